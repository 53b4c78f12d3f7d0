"""Chooses the DeviceClasses of a driver's ordinary devices with the user. If the driver has none, it makes one. For `initialize`."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.kube.client import Object
from testbed.onboarding.discovery.facts import ClusterFacts, PublishedDevice
from testbed.onboarding.discovery.inference.classes import Classes, classes_of
from testbed.onboarding.discovery.inference.made_class import class_manifest, groups
from testbed.onboarding.discovery.questions import Questions

_KEY = "devices.classes"


def choose_classes(
    facts: ClusterFacts, driver: str, devices: Sequence[PublishedDevice], questions: Questions
) -> tuple[Classes, Object | None]:
    """Return the driver's classes, and the manifest of one that does not exist yet, or None."""
    found = classes_of(driver, facts.classes, devices)
    if found.unknown:
        names = ", ".join(found.unknown)
        questions.note(_KEY, f"The selector of {names} could not be evaluated. Does it select ordinary devices?")
    if found.ordinary:
        return classes_of(driver, facts.classes, devices, _further(found, questions)), None
    made = _made(facts, driver, devices, questions)
    return classes_of(driver, [made], devices), made


def _further(found: Classes, questions: Questions) -> list[str]:
    """Return which further classes the user regards as ordinary."""
    texts = {name: f"Are the {count} devices of class {name} ordinary, too?" for name, count in found.further.items()}
    return [name for name, text in texts.items() if questions.confirm(_KEY, text)]


def _made(facts: ClusterFacts, driver: str, devices: Sequence[PublishedDevice], questions: Questions) -> Object:
    """Return a DeviceClass of the devices that the user chooses, with a name that no class has."""
    known = groups(devices)
    question = f"No DeviceClass is for driver {driver}. Which devices are the ordinary ones?"
    choice = questions.choose(_KEY, question, known.choices, known.default)
    taken = {each["metadata"]["name"] for each in facts.classes}
    name = driver if driver not in taken else f"ordinary.{driver}"
    return class_manifest(driver, name, *((known.attribute, known.values[choice]) if choice in known.values else ()))

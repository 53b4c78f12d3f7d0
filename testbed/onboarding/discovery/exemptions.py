"""Finds the features that a kind of driver cannot have, and asks about the uses of claims that did not work. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from testbed.models.features import EXEMPTIBLE
from testbed.onboarding.checks.contents import Contents
from testbed.onboarding.discovery.facts import Sample
from testbed.onboarding.discovery.inference.probes import split
from testbed.onboarding.discovery.inference.shown import ProbeFinding, cpus, new_texts, shown_devices
from testbed.onboarding.discovery.limits import Limits
from testbed.onboarding.discovery.questions import Questions

_BY_CDI = ("env", "deviceNode", "mount")
_INTERFACE = "networkInterface"
_NOT_COMPARED = ("command", "cpuset")


def exemptions(
    samples: Collection[Sample], probe: ProbeFinding | None, limits: Limits, questions: Questions
) -> list[str]:
    """Return the exemptions of a driver: those that follow from its kind, and those that the user confirms."""
    of_its_kind = {*(["cdi"] if outside_cdi(samples) else []), *(["per-container"] if _is_of_pods(probe) else [])}
    return sorted({*of_its_kind, *_confirmed(probe, limits, questions)})


def outside_cdi(samples: Collection[Sample]) -> list[str]:
    """Return what claims add to containers although no CDI file of the node has it; nothing if these files cannot be read."""
    with_claim, without = split(samples)
    known = [each.cdi for each in samples if each.cdi is not None]
    if not known or not without:
        return []
    return [each for sample in with_claim for each in _missing(sample, without, "\n".join(known))]


def _missing(sample: Sample, without: Sequence[Contents], cdi: str) -> Iterator[str]:
    names = (text.partition("=")[0] for kind in _BY_CDI for text in new_texts(kind, sample, without))
    yield from (name for name in names if name not in cdi)
    yield from new_texts(_INTERFACE, sample, without)
    if all(each.cpus != sample.contents.cpus for each in without):
        yield f"CPUs {cpus(sample.contents)}"


def _is_of_pods(probe: ProbeFinding | None) -> bool:
    """Return True for what all containers of a pod have: its network namespace."""
    return probe is not None and probe.kind == _INTERFACE


def _confirmed(probe: ProbeFinding | None, limits: Limits, questions: Questions) -> Iterator[str]:
    for exemption, why in sorted({**_wrong(probe, limits), **limits.refusals}.items()):
        question = f"Is this excluded by the driver's documentation ({exemption}): {EXEMPTIBLE[exemption]}? Seen: {why}"
        if questions.confirm("exempt", question):
            yield exemption


def _wrong(probe: ProbeFinding | None, limits: Limits) -> dict[str, str]:
    """Return what containers show that had to show something else, by exemption."""
    if probe is None or probe.kind in _NOT_COMPARED:
        return {}
    found = {
        exemption: "a container that refers to the claim shows no device"
        for exemption, containers in limits.containers.items()
        if not all(shown_devices(probe, each) for each in containers)
    }
    beside = shown_devices(probe, limits.beside)
    if beside and not _is_of_pods(probe):
        found["per-container"] = f"a container that does not refer to the claim shows {', '.join(beside)}"
    return found

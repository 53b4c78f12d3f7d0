"""Finds the features that a kind of driver cannot have, and asks about the uses of claims that it refused. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from testbed.models.features import EXEMPTIBLE
from testbed.onboarding.discovery.facts import Sample
from testbed.onboarding.discovery.inference.probes import additions
from testbed.onboarding.discovery.inference.shown import ProbeFinding, shown_devices
from testbed.onboarding.discovery.limits import Limits
from testbed.onboarding.discovery.questions import Questions

_BY_CDI = ("environment variable ", "device node ", "mount ")
_INTERFACE = "networkInterface"


def exemptions(
    samples: Collection[Sample], probe: ProbeFinding | None, limits: Limits, questions: Questions
) -> list[str]:
    """Return the exemptions of a driver: those that follow from its kind, and those that the user confirms."""
    return sorted({*_of_its_kind(samples, probe), *_confirmed(probe, limits, questions)})


def _of_its_kind(samples: Collection[Sample], probe: ProbeFinding | None) -> Iterator[str]:
    known = [each.cdi for each in samples if each.cdi is not None]
    if known and not all(_is_in(each, "\n".join(known)) for each in additions(samples)):
        yield "cdi"
    if probe and probe.kind == _INTERFACE:
        yield "per-container"  # all containers of a pod have the network namespace of the pod


def _confirmed(probe: ProbeFinding | None, limits: Limits, questions: Questions) -> Iterator[str]:
    refusals = dict(limits.refusals)
    is_tried = probe is not None and probe.kind not in (_INTERFACE, "cpuset", "command")
    seen = shown_devices(probe, limits.beside) if probe and is_tried else []
    if seen:
        refusals["per-container"] = f"a container that does not refer to the claim shows {', '.join(seen)}"
    for exemption, why in sorted(refusals.items()):
        question = f"Is this excluded by the driver's documentation ({exemption}): {EXEMPTIBLE[exemption]}? Seen: {why}"
        if questions.confirm("exempt", question):
            yield exemption


def _is_in(addition: str, cdi: str) -> bool:
    word = next((addition.removeprefix(kind) for kind in _BY_CDI if addition.startswith(kind)), "")
    return bool(word) and word in cdi

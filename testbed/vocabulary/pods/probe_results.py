"""What probes printed in containers: kept for the evidence, and used to explain why a container sees the wrong devices or settings. Pure.

Messages contain names from the output, but no values, because the driver may have put secrets into the container.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeGuard

from testbed.drivers.published.slices import Device
from testbed.vocabulary.checked_sets import CheckedSet
from testbed.vocabulary.pods.probe_answers import Answer

_DENIED = ("permission denied", "operation not permitted")
_AS_USER = "; it was denied access, so it may need asRoot: true in spec.probe"
_SHOWN = 4
_LINES = 500  # in which the most similar one is searched
_SIMILAR = 0.6
_NAME = re.compile(r"[^=:]{0,60}[=:]?")
_NO_DEVICE = "the driver added nothing to the container, or no line that the probe printed matches spec.probe"
_TOO_FEW = (
    "the driver added only some of the devices to the container, or spec.probe matches only some lines of the probe"
)
_OTHERS = "the driver added another device to the container than was allocated, or publishes the wrong identity for it"
_TOO_MANY = (
    "the driver added devices that were not allocated to the container: those of other claims, or all of the node"
)
_NO_SETTING = (
    "the driver did not apply the configuration of the claim or of its class, or `shows` in spec.configuration of the"
    " driver file matches nothing that the command printed"
)
_OTHER_SETTING = (
    "the driver applied the configuration of another request, or one of lower precedence:"
    " the claim's takes precedence over the class's, a later one over an earlier one"
)
_SURPLUS_SETTING = "the driver applied a configuration for another request or another driver"
_DIFFERENT_DEVICES = "the driver added another device to one of the containers than was allocated"
_DIFFERENT_SETTINGS = "the driver configured the device for only one of the containers, or differently for each"


@dataclass(frozen=True)
class ProbeResult:
    """What a probe printed in a container, and the devices that it shows."""

    pod: str
    container: str
    printed: str
    matches: str
    devices: frozenset[Device] = frozenset()
    of_settings: bool = False  # printed by the command of spec.configuration, which shows no devices
    code: int = 0  # the exit code, unless the probe was the command of its container
    errors: str = ""  # its standard error
    pod_uid: str = ""
    answer: Answer | None = None  # if it names no devices, so that it is compared with those of other containers

    def __str__(self) -> str:
        return f"container {self.container} of pod {self.pod}"

    @property
    def evidence(self) -> str:
        """Return all that the probe printed, and how it ended."""
        ended = f"exit code {self.code}" + (f", standard error:\n{self.errors}" if self.errors else "\n")
        return f"{self.printed}\n--- {ended}" if self.code or self.errors else self.printed

    @property
    def summary(self) -> str:
        """Return how many lines were printed, whether some match, and if none does, the name in the most similar line."""
        names = [_name(line) for line in self.printed.splitlines()[:_LINES] if line.strip()]
        pattern = _name(re.sub(r"\(\?P<.*|\\.[+*?]?|[\^$()\[\]|?*+]", "", self.matches) or self.matches)
        similar = difflib.get_close_matches(pattern, names, n=1, cutoff=_SIMILAR)
        denied = any(text in self.errors.lower() for text in _DENIED)
        ended = (f" and exited with code {self.code}" if self.code else "") + (_AS_USER if denied else "")
        if not names:
            return f"the probe printed nothing in {self}{ended}"
        printed = f"the probe printed {len(names)} line{'s' * (len(names) > 1)} in {self}{ended}"
        if similar and not self.devices:
            return f"{printed}, none matches, and the most similar is {similar[0]}…"
        return f"{printed}, {'some match' if self.devices else 'and none is similar'}"


class SeenDevices(CheckedSet[Device]):
    """The devices that containers see, with the probe results that show them."""

    probe_results: tuple[ProbeResult, ...]

    def __new__(cls, probe_results: Iterable[ProbeResult]) -> Self:
        """Return all devices in these results."""
        every = tuple(probe_results)
        made = super().__new__(cls, (device for result in every for device in result.devices))
        made.probe_results = every
        return made

    @property
    def why_empty(self) -> str:
        """Return the likely cause that the containers see no device."""
        return _NO_DEVICE

    @property
    def who(self) -> str:
        """Return the name of the container, or of the pods, that see the devices."""
        return (
            str(self.probe_results[0])
            if len(self.probe_results) == 1
            else " and ".join(sorted({f"pod {x.pod}" for x in self.probe_results}))
        )

    @property
    def named(self) -> str:
        """Return the devices for a message."""
        return named_devices(self)


class Settings(CheckedSet[str]):
    """The settings of the driver file (one, other) that a container shows its device to have."""

    who: str

    def __new__(cls, who: str, names: Iterable[str]) -> Self:
        """Return the settings that the container `who` shows."""
        made = super().__new__(cls, names)
        made.who = who
        return made

    @property
    def why_empty(self) -> str:
        """Return the likely cause that the container shows no setting."""
        return _NO_SETTING

    @property
    def named(self) -> str:
        """Return the settings for a message."""
        return _quoted(self) or "none"


@dataclass(frozen=True)
class ProbeResults:
    """The newest probe results of each container, by namespace."""

    kept: dict[str, dict[tuple[str, str, bool], ProbeResult]] = field(default_factory=dict)

    def keep(self, namespace: str, result: ProbeResult) -> ProbeResult:
        """Keep a result until its namespace is forgotten, and return it."""
        self.kept.setdefault(namespace, {})[result.pod, result.container, result.of_settings] = result
        return result

    def of(self, namespace: str) -> tuple[ProbeResult, ...]:
        """Return the results of a namespace."""
        return tuple(self.kept.get(namespace, {}).values())

    def forget(self, namespace: str) -> None:
        """Remove the results of a namespace."""
        self.kept.pop(namespace, None)


def explain_comparison(op: str, left: object, right: object) -> list[str]:
    """Explain a failed comparison of devices or settings, in lines; [] for other comparisons."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        wrong = [each for each in left if each in right and not _are_same(left[each], right[each])]
        found = explain_comparison(op, left[wrong[0]], right[wrong[0]]) if wrong else []
        return [*found, *([f"  and {len(wrong) - 1} more that differ"] if found and wrong[1:] else [])]
    if op == "==" and isinstance(left, SeenDevices | Settings) and isinstance(right, type(left)):
        return _explain_difference(left, right)
    if op == "==" and isinstance(left, Settings) and isinstance(right, frozenset | set):
        return _explain_settings(left, right)
    if op not in ("==", "<=") or not (_are_devices(left) and _are_devices(right)):
        return []
    seen, wanted = (left, right) if isinstance(left, SeenDevices) else (right, left)
    if not isinstance(seen, SeenDevices):
        return []
    missing = wanted - seen if op == "==" or seen is right else frozenset()
    surplus = seen - wanted if op == "==" or seen is left else frozenset()
    only = "only " if op == "<=" and seen is left else ""
    return [
        f"expected {seen.who} to see {only}{named_devices(wanted)}; it sees {named_devices(seen)}",
        f"  likely cause: {_cause(seen, missing, surplus)}",
        _last_seen(seen.probe_results, empty_first=bool(missing)),
    ]


def _last_seen(probe_results: Sequence[ProbeResult], *, empty_first: bool) -> str:
    empty = next((result for result in probe_results if not result.devices), None) if empty_first else None
    seen = empty or next(iter(probe_results), None)
    return f"  last seen: {seen.summary if seen else 'no container'}; the whole output is in probe/ of the evidence"


def _explain_difference(one: SeenDevices | Settings, other: SeenDevices | Settings) -> list[str]:
    """Explain why two containers differ. Either may be wrong; one that sees no device probably is."""
    first = f"expected {one.who} and {other.who} to see the same; the first sees {one.named}, the other {other.named}"
    if isinstance(one, Settings) or isinstance(other, Settings):
        return [first, f"  likely cause: {_DIFFERENT_SETTINGS}"]
    cause = _DIFFERENT_DEVICES if one and other else _NO_DEVICE
    return [first, f"  likely cause: {cause}", _last_seen((*one.probe_results, *other.probe_results), empty_first=True)]


def _explain_settings(shown: Settings, wanted: frozenset[str] | set[str]) -> list[str]:
    surplus = shown - wanted
    cause = _SURPLUS_SETTING if not wanted - shown else _OTHER_SETTING if surplus else _NO_SETTING
    setting = f"the setting {_quoted(wanted)}" if wanted else "no setting"
    return [
        f"expected {shown.who} to show {setting} of spec.configuration; it shows {shown.named}",
        f"  likely cause: {cause}",
        "  last seen: the output of the command is in probe/ of the evidence",
    ]


def describe_empty_results(probe_results: Iterable[ProbeResult]) -> list[str]:
    """Describe the containers that show no device, for other assertions that failed."""
    return [
        f"  last seen: {result} shows no device; {result.summary}"
        for result in probe_results
        if not result.devices and not result.of_settings
    ]


def _cause(seen: SeenDevices, missing: frozenset[Device], surplus: frozenset[Device]) -> str:
    if not seen:
        return _NO_DEVICE
    if missing:
        return _OTHERS if surplus else _TOO_FEW
    return _TOO_MANY


def named_devices(devices: Iterable[Device]) -> str:
    """Return devices for a message; 'no device' if there is none."""
    names = [f"{each.name} of {each.pool}" for each in sorted(devices)]
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return " and ".join([*names[:_SHOWN], *more]) or "no device"


def _quoted(settings: Iterable[str]) -> str:
    return " and ".join(f"'{each}'" for each in sorted(settings))


def _name(line: str) -> str:
    """Return what stands before the value."""
    found = _NAME.match(line.strip())
    return found[0] if found else ""


def _are_same(one: object, other: object) -> bool:
    """Return True if two values are equal, also if both are empty sets."""
    plain = (frozenset(each) if isinstance(each, CheckedSet) else each for each in (one, other))
    return next(plain) == next(plain)


def _are_devices(what: object) -> TypeGuard[frozenset[Device]]:
    return isinstance(what, frozenset | set) and all(isinstance(each, Device) for each in what)

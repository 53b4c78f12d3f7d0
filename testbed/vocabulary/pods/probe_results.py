"""What probes printed in containers, kept for the evidence, and why the devices or settings in it are not the expected ones. Pure.

Of what was printed only names are told, never values: the driver may have put anything beside its devices.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeGuard

from testbed.drivers.published.slices import Device

_SHOWN = 4
_LINES = 500  # of so many the nearest one is looked for
_ALIKE = 0.6
_NAME = re.compile(r"[^=:]{0,60}[=:]?")
_SECRET = re.compile(r"^(?P<name>[^=:]*(?:secret|token|passw|credential|private|key)[^=:]*[=:]).+", re.IGNORECASE)
_BLIND = "no line of what the probe printed matches spec.probe.matches, or the driver put nothing into the container"
_PARTLY = "the driver put only a part of them into the container, or spec.probe.matches fits only a part of what the probe printed"
_OTHERS = (
    "the driver put another device into the container than was allocated, or publishes the identity of another one"
)
_UNSET = (
    "the driver applied no configuration of the claim or of its class, or `shows` in spec.configuration of the driver"
    " file fits nothing that its command printed"
)
_SET_OTHERWISE = (
    "the driver applied the configuration of another request, or not the one that counts:"
    " the claim's and not the class's, the last and not an earlier one"
)
_SET_TOO = "the driver applied a configuration that is for another request, or for another driver"
_UNLIKE = "the driver put another device into one of them than was allocated, or did not treat their claims alike"
_UNLIKE_SETTINGS = "the driver configured the device for one of them only, or for each in another way"
_MORE = "the driver put more into the container than was allocated: devices of other claims, or all that the node has"


@dataclass(frozen=True)
class ProbeResult:
    """What a probe printed in a container, and the devices in it."""

    pod: str
    container: str
    printed: str
    matches: str
    devices: frozenset[Device] = frozenset()
    of_settings: bool = False  # the command of spec.configuration, which shows no devices

    def __str__(self) -> str:
        return f"container {self.container} of pod {self.pod}"

    @property
    def redacted(self) -> str:
        """All that was printed, but the values of what may be a secret."""
        return "".join(_SECRET.sub(r"\g<name>…", line) + "\n" for line in self.printed.splitlines())

    @property
    def told(self) -> str:
        """The line that was probably meant, where none matches, without its value; or how many there were."""
        names = [_name(line) for line in self.printed.splitlines()[:_LINES] if line.strip()]
        meant = _name(re.sub(r"\(\?P<.*|\\.[+*?]?|[\^$()\[\]|?*+]", "", self.matches) or self.matches)
        near = difflib.get_close_matches(meant, names, n=1, cutoff=_ALIKE)
        if not names:
            return f"the probe printed nothing in {self}"
        printed = f"the probe printed {len(names)} line{'s' * (len(names) > 1)} in {self}"
        if near and not self.devices:
            return f"{printed}, none matches, and the nearest is {near[0]}…"
        return f"{printed}, {'some match' if self.devices else 'and none is like it'}"


class SeenDevices(frozenset[Device]):
    """The devices that containers see, and the looks at them."""

    probe_results: tuple[ProbeResult, ...]

    def __new__(cls, probe_results: Iterable[ProbeResult]) -> Self:
        """All that was seen in them."""
        every = tuple(probe_results)
        made = super().__new__(cls, (device for look in every for device in look.devices))
        made.probe_results = every
        return made

    def __repr__(self) -> str:
        return repr(frozenset(self))

    @property
    def who(self) -> str:
        """Who sees them."""
        return (
            str(self.probe_results[0])
            if len(self.probe_results) == 1
            else " and ".join(sorted({f"pod {x.pod}" for x in self.probe_results}))
        )

    @property
    def named(self) -> str:
        """For people."""
        return _told(self)


class Settings(frozenset[str]):
    """The settings of the driver file (one, other) that a container shows its device to have."""

    who: str

    def __new__(cls, who: str, names: Iterable[str]) -> Self:
        """What this container shows."""
        made = super().__new__(cls, names)
        made.who = who
        return made

    def __repr__(self) -> str:
        return repr(frozenset(self))

    @property
    def named(self) -> str:
        """For people."""
        return _quoted(self) or "none"


@dataclass(frozen=True)
class ProbeResults:
    """The newest look at each container, by its namespace."""

    kept: dict[str, dict[tuple[str, str, bool], ProbeResult]] = field(default_factory=dict)

    def keep(self, namespace: str, look: ProbeResult) -> ProbeResult:
        """Remember it until its namespace is forgotten."""
        self.kept.setdefault(namespace, {})[look.pod, look.container, look.of_settings] = look
        return look

    def of(self, namespace: str) -> tuple[ProbeResult, ...]:
        """The looks at containers of a namespace."""
        return tuple(self.kept.get(namespace, {}).values())

    def forget(self, namespace: str) -> None:
        """Its containers are gone."""
        self.kept.pop(namespace, None)


def explain_comparison(op: str, left: object, right: object) -> list[str]:
    """What a comparison of devices or settings that failed means, in lines; none for what is no such comparison."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        wrong = [each for each in left if each in right and left[each] != right[each]]
        found = explain_comparison(op, left[wrong[0]], right[wrong[0]]) if wrong else []
        return [*found, *([f"  the same of {len(wrong) - 1} more"] if found and wrong[1:] else [])]
    if op == "==" and isinstance(left, SeenDevices | Settings) and isinstance(right, type(left)):
        return _of_two(left, right)
    if op == "==" and isinstance(left, Settings) and isinstance(right, frozenset | set):
        return _of_settings(left, right)
    if op not in ("==", "<=") or not (_are_devices(left) and _are_devices(right)):
        return []
    seen, wanted = (left, right) if isinstance(left, SeenDevices) else (right, left)
    if not isinstance(seen, SeenDevices):
        return []
    missing = wanted - seen if op == "==" or seen is right else frozenset()
    surplus = seen - wanted if op == "==" or seen is left else frozenset()
    return [
        f"expected {seen.who} to see {'only ' if op == '<=' and seen is left else ''}{_told(wanted)}; it sees {_told(seen)}",
        f"  likely cause: {_cause(seen, missing, surplus)}",
        _last_seen(seen.probe_results, blind_first=bool(missing)),
    ]


def _last_seen(probe_results: Sequence[ProbeResult], *, blind_first: bool) -> str:
    doubted = next((look for look in probe_results if not look.devices), None) if blind_first else None
    seen = doubted or next(iter(probe_results), None)
    return f"  last seen: {seen.told if seen else 'no container'}; all of it is in probe/ of the evidence"


def _of_two(one: SeenDevices | Settings, other: SeenDevices | Settings) -> list[str]:
    """Nobody knows which of them is wrong, unless one sees no device."""
    first = f"expected {one.who} and {other.who} to see the same; the first sees {one.named}, the other {other.named}"
    if isinstance(one, Settings) or isinstance(other, Settings):
        return [first, f"  likely cause: {_UNLIKE_SETTINGS}"]
    cause = _UNLIKE if one and other else _BLIND
    return [first, f"  likely cause: {cause}", _last_seen((*one.probe_results, *other.probe_results), blind_first=True)]


def _of_settings(shown: Settings, wanted: frozenset[str] | set[str]) -> list[str]:
    surplus = shown - wanted
    cause = _SET_TOO if wanted <= shown else _SET_OTHERWISE if surplus else _UNSET
    setting = f"the setting {_quoted(wanted)}" if wanted else "no setting"
    return [
        f"expected {shown.who} to show {setting} of spec.configuration; it shows {shown.named}",
        f"  likely cause: {cause}",
        "  last seen: what its command printed is in probe/ of the evidence",
    ]


def describe_empty_results(probe_results: Iterable[ProbeResult]) -> list[str]:
    """What is told of containers that show no device, where an assertion that failed says nothing of them."""
    return [
        f"  last seen: {look} shows no device; {look.told}"
        for look in probe_results
        if not look.devices and not look.of_settings
    ]


def _cause(seen: SeenDevices, missing: frozenset[Device], surplus: frozenset[Device]) -> str:
    if not seen:
        return _BLIND
    if missing:
        return _OTHERS if surplus else _PARTLY
    return _MORE


def _told(devices: Iterable[Device]) -> str:
    names = [f"{each.name} of {each.pool}" for each in sorted(devices)]
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return " and ".join([*names[:_SHOWN], *more]) or "no device"


def _quoted(settings: Iterable[str]) -> str:
    return " and ".join(f"'{each}'" for each in sorted(settings))


def _name(line: str) -> str:
    """What stands before the value."""
    found = _NAME.match(line.strip())
    return found[0] if found else ""


def _are_devices(what: object) -> TypeGuard[frozenset[Device]]:
    return isinstance(what, frozenset | set) and all(isinstance(each, Device) for each in what)

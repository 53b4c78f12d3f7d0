"""The section `probe` of a driver file: how a container shows which devices it has. `driver_file` assembles the sections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from testbed.models.driver_sections import check_regex
from testbed.models.strict import Strict

# What an answer is made of: values of the identity attribute, names of devices, members of a set that slices do not have,
# the number of devices, whether there are any, or devices themselves.
Shown = Literal["id", "name", "set", "count", "exit code", "device"]
_GROUP_NAMES: tuple[Shown, ...] = ("id", "name", "set", "count")
_METADATA_FILES = "/var/run/kubernetes.io/dra-device-attributes/*/*/*/*-metadata.json"
# The commands of the kinds that need no command of their own. All of them run without privileges, and in busybox.
_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "env": ("env",),
    "deviceNode": ("find", "/dev", "-type", "c", "-o", "-type", "b"),
    "mount": ("cut", "-d ", "-f5", "/proc/self/mountinfo"),
    "networkInterface": ("ls", "/sys/class/net"),
    "cpuset": ("grep", "Cpus_allowed_list:", "/proc/self/status"),
    "metadata": ("sh", "-c", f"cat {_METADATA_FILES} 2>/dev/null"),
}
_CPUS = r"^Cpus_allowed_list:\s*(?P<set>\S+)$"
# The last line makes the exit code readable in the log of a container, too.
_WITH_CODE = '"$@"; code=$?; echo; echo "exit code $code"; exit $code'
_SUCCESS = r"^exit code (?P<set>0)$"
_RANGE = re.compile(r"(\d+)-(\d+)")
_MAX_RANGE = 100_000  # of CPUs; a longer one is text that looks like a range


def _check_pattern(text: str) -> str:
    known = set(_GROUP_NAMES) & re.compile(check_regex(text)).groupindex.keys()
    if not known:
        raise ValueError("needs a group named id, name, set or count, such as (?P<id>…)")
    if len(known) > 1:
        names = " and ".join(f"a group {name}" for name in _GROUP_NAMES if name in known)
        raise ValueError(f"has both {names}, but must have only one of them")
    return text


Pattern = Annotated[str, AfterValidator(_check_pattern)]
_GROUPS = (
    "The group `id` is the value of devices.identity.attribute; the group `name` is the name of a device on the node; "
    "the group `set` is something else that shows a device; the group `count` is the number of devices."
)


class Observation(Strict):
    """What a container shows of devices: one of env, deviceNode, mount, networkInterface, cpuset, metadata, command."""

    env: Pattern | None = Field(
        None, description=f"Regular expression for NAME=VALUE of environment variables. {_GROUPS}"
    )
    device_node: Pattern | None = Field(None, description=f"Regular expression for paths of device nodes. {_GROUPS}")
    mount: Pattern | None = Field(None, description=f"Regular expression for paths of mount points. {_GROUPS}")
    network_interface: Pattern | None = Field(
        None, description=f"Regular expression for names of network interfaces. {_GROUPS}"
    )
    cpuset: bool = Field(
        False,
        description="Whether the CPUs of a container are its devices. Their numbers are values of devices.identity.attribute; "
        "without identity they are compared as a set.",
    )
    metadata: bool = Field(False, description="Whether device metadata files (KEP-5304) name the devices.")
    command: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="Command that runs in the container. Without `lines` its exit code answers: 0 if the container has a device.",
    )
    lines: Pattern | None = Field(None, description=f"Regular expression for lines of the command's output. {_GROUPS}")

    @model_validator(mode="after")
    def _require_one_kind(self) -> Observation:
        given = self.model_dump(by_alias=True)
        known = (*_COMMANDS, "command")
        kinds = [name for name in known if given[name]]
        if len(kinds) != 1:
            raise ValueError(f"has {' and '.join(kinds) or 'none'} of {', '.join(known)}, but must have one of them")
        if self.lines and not self.command:
            raise ValueError("has lines, which requires command")
        return self

    @property
    def kind(self) -> str:
        """Return the key that says what is observed, such as env or deviceNode."""
        given = self.model_dump(by_alias=True)
        return next(name for name in (*_COMMANDS, "command") if given[name])

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the command that runs in the container."""
        if self.command and not self.lines:
            return ("sh", "-c", _WITH_CODE, "sh", *self.command)
        return self.command or _COMMANDS[self.kind]

    @property
    def program(self) -> str:
        """Return the program of the command."""
        return (self.command or self.argv)[0]

    @property
    def pattern(self) -> str:
        """Return the regular expression for what the container shows; '' for metadata, which is JSON."""
        own = self.env or self.device_node or self.mount or self.network_interface or self.lines
        return own or {"cpuset": _CPUS, "command": _SUCCESS}.get(self.kind, "")

    @property
    def key(self) -> str:
        """Return the key of the driver file that says what matches."""
        return "spec.probe.lines" if self.lines else f"spec.probe.{self.kind}"

    @property
    def shows(self) -> Shown:
        """Return what an answer is made of."""
        if self.metadata:
            return "device"
        if self.command and not self.lines:
            return "exit code"
        return next(each for each in _GROUP_NAMES if each in re.compile(self.pattern).groupindex)

    @property
    def shows_ids(self) -> bool:
        """Return True if containers show the values of an attribute."""
        return self.shows == "id"

    @property
    def shows_names(self) -> bool:
        """Return True if containers show the names of devices rather than an attribute."""
        return self.shows == "name"

    def ids(self, output: str) -> tuple[str, ...]:
        """Return what a command's output shows of devices, sorted: identities, names, or members of a set.

        A count is that many numbers. An exit code of 0 is one member. Metadata files are not read here.
        """
        found = re.finditer(self.pattern, output, re.MULTILINE) if self.pattern else ()
        texts = [each[self._group] for each in found]
        values = [text for text in texts if text is not None]
        if self.shows == "count":
            return tuple(map(str, range(sum(int(text) for text in values if text.isdecimal()))))
        if self._group == "set":
            return tuple(sorted({member for text in values for member in _members(text)}))
        return tuple(sorted(values))

    @property
    def _group(self) -> str:
        return self.shows if self.shows in _GROUP_NAMES else "set"


class Without(Observation):
    """What a pod without a claim must not see."""


class Probe(Observation):
    """How a container shows which devices it has: one of env, deviceNode, mount, networkInterface, cpuset, metadata, command."""

    MOVED: ClassVar[Mapping[str, str]] = {
        "matches": "spec.probe.lines, or with command: [env] to spec.probe.env alone",
        "identityAttribute": "spec.devices.identity.attribute; add scope: cluster if no two nodes have the same value",
    }

    image: str = Field(
        "",
        description="Image of test pods, for a command that busybox cannot run. It needs sh and some of the programs of busybox.",
    )
    as_root: bool = Field(
        False,
        description="Whether test pods run as root, for a probe that reads files of root. Otherwise they run as a user and meet the "
        "Pod Security Standard restricted.",
    )
    program_from_driver: bool = Field(
        False,
        description="Whether the driver adds the program of `command` to containers with a device. If it cannot be started there, "
        "the container has no device.",
    )
    without: Without | None = Field(
        None, description="Probe for containers without a claim: what they must not see. Absent: the same probe."
    )

    @model_validator(mode="after")
    def _image_has_a_command(self) -> Probe:
        if self.image and not self.command:
            raise ValueError("has an image, which requires command")
        if self.program_from_driver and not self.command:
            raise ValueError("has programFromDriver, which requires command")
        return self

    @property
    def of_others(self) -> Observation:
        """Return the probe for containers without a claim."""
        return self.without or self

    @property
    def is_unforgeable(self) -> bool:
        """Return True if no pod can set itself what shows a device to containers without a claim. A command may read variables."""
        return self.of_others.kind != "env" and (self.without is not None or self.kind != "command")


def _members(text: str) -> Iterator[str]:
    """Yield the members of a list such as 0-3,8; words are separated by commas."""
    for word in filter(None, text.split(",")):
        bounds = _RANGE.fullmatch(word)
        if bounds and 0 <= int(bounds[2]) - int(bounds[1]) < _MAX_RANGE:
            yield from map(str, range(int(bounds[1]), int(bounds[2]) + 1))
        else:
            yield word

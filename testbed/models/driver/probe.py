"""The section `probe` of a driver file: how a container shows which devices it has. `driver_file` assembles the sections."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, model_validator

from testbed.models.driver_sections import check_regex
from testbed.models.strict import Strict


def _check_pattern(text: str) -> str:
    known = {"id", "name"} & re.compile(check_regex(text)).groupindex.keys()
    if not known:
        raise ValueError("needs a group named id or name, such as (?P<id>…)")
    if len(known) > 1:
        raise ValueError("has both a group id and a group name, but must have only one of them")
    return text


Pattern = Annotated[str, AfterValidator(_check_pattern)]
_GROUPS = (
    "The group `id` is the value of devices.identity.attribute; the group `name` is the name of a device on the node."
)
_KINDS = ("env", "deviceNode", "mount", "networkInterface", "cpuset", "metadata", "command")


class Without(Strict):
    """What a pod without a claim must not see."""

    command: tuple[str, ...] = Field(min_length=1, description="Command that runs in the container.")


class Probe(Strict):
    """How a container shows which devices it has: one of env, deviceNode, mount, networkInterface, cpuset, metadata, command."""

    MOVED: ClassVar[Mapping[str, str]] = {
        "matches": "spec.probe.lines, or with command: [env] to spec.probe.env alone",
        "identityAttribute": "spec.devices.identity.attribute; add scope: cluster if no two nodes have the same value",
    }

    env: Pattern | None = Field(
        None, description=f"Regular expression for NAME=VALUE of environment variables. {_GROUPS}"
    )
    device_node: Pattern | None = Field(None, description=f"Regular expression for paths of device nodes. {_GROUPS}")
    mount: Pattern | None = Field(None, description=f"Regular expression for paths of mount points. {_GROUPS}")
    network_interface: Pattern | None = Field(
        None, description=f"Regular expression for names of network interfaces. {_GROUPS}"
    )
    cpuset: bool = Field(False, description="Whether the CPUs of a container are its devices.")
    metadata: bool = Field(False, description="Whether device metadata files name the devices.")
    command: tuple[str, ...] | None = Field(None, min_length=1, description="Command that runs in the container.")
    lines: Pattern | None = Field(None, description=f"Regular expression for lines of the command's output. {_GROUPS}")
    image: str = Field("", description="Image of the container, for a command that busybox cannot run.")
    as_root: bool = Field(
        False,
        description="Whether test pods run as root, for a probe that reads files of root. Otherwise they run as a user and meet the "
        "Pod Security Standard restricted.",
    )
    without: Without | None = Field(None, description="Probe for pods without a claim. Absent: the same probe.")

    @model_validator(mode="after")
    def _require_one_kind(self) -> Probe:
        given = self.model_dump(by_alias=True)
        kinds = [name for name in _KINDS if given[name]]
        if len(kinds) != 1:
            raise ValueError(f"has {' and '.join(kinds) or 'none'} of {', '.join(_KINDS)}, but must have one of them")
        if bool(self.command) != bool(self.lines):
            raise ValueError("has only one of command and lines, but needs both")
        if self.image and not self.command:
            raise ValueError("has an image, which requires command")
        return self

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the command that runs in the container."""
        return ("env",) if self.env else self.command or ()

    @property
    def pattern(self) -> str:
        """Return the regular expression for what the container shows; '' if it has none."""
        return self.env or self.device_node or self.mount or self.network_interface or self.lines or ""

    @property
    def key(self) -> str:
        """Return the key of the driver file that has the regular expression."""
        return "spec.probe.env" if self.env else "spec.probe.lines"

    @property
    def shows_ids(self) -> bool:
        """Return True if containers show the values of an attribute."""
        return "id" in re.compile(self.pattern).groupindex

    @property
    def shows_names(self) -> bool:
        """Return True if containers show the names of devices rather than an attribute."""
        return "name" in re.compile(self.pattern).groupindex

    def ids(self, output: str) -> tuple[str, ...]:
        """Return what a command's output shows of devices, sorted: their names, or the values of the attribute."""
        group = "name" if self.shows_names else "id"
        matches = re.finditer(self.pattern, output, re.MULTILINE)
        return tuple(sorted(each[group] for each in matches if each[group] is not None))

"""The shape of a Hardware file, for its schema and so for editors. The fake driver, which reads such files itself, has the last word."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from testbed.models.strict import Strict

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
Quantity = int | Annotated[str, Field(pattern=r"^\d+(\.\d+)?([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$")]
AbsolutePath = Annotated[str, Field(pattern="^/")]
Number = Annotated[int, Field(ge=0, le=2**32 - 1)]
Text = Annotated[str, Field(min_length=1)]
Texts = tuple[Text, ...]
Patterns = Annotated[tuple[str, ...], Field(description="names, with * and ? as a shell has them")]


class SemanticVersion(Strict):
    """An attribute that is compared as a version."""

    version: str = Field(description="such as 1.2.3", max_length=64)


Scalar = bool | int | Annotated[str, Field(min_length=1, max_length=64)] | SemanticVersion
Attributes = dict[str, Scalar | list[Scalar]]


class ValidRange(Strict):
    """Every so many steps from min to max."""

    min: Quantity
    max: Quantity | None = None
    step: Quantity | None = None


class RequestPolicy(Strict):
    """How much of a capacity a request may ask for; as in the API."""

    default: Quantity = Field(description="for requests that say nothing")
    valid_values: tuple[Quantity, ...] = Field((), max_length=10)
    valid_range: ValidRange | None = None


class Amount(Strict):
    """A capacity that claims share."""

    value: Quantity
    request_policy: RequestPolicy | None = None


Capacity = dict[str, Quantity | Amount]


class Taint(Strict):
    """Keeps claims away that do not tolerate it."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "NoExecute", "None"]


class Profile(Strict):
    """One way to cut a device."""

    name: str = Field(pattern=r"^[a-z0-9]([-.a-z0-9]{0,14}[a-z0-9])?$")
    count: int = Field(ge=1, description="so many devices of this kind for each whole")
    takes: dict[str, Quantity] = Field(min_length=1, description="of the counters")
    attributes: Attributes = Field({}, description="beside those of the whole")
    capacity: Capacity = Field({}, description="without it, what it takes")


class Partitions(Strict):
    """The parts that a device can be cut into, and what they share."""

    counters: dict[str, Quantity] = Field(min_length=1, max_length=32)
    profiles: tuple[Profile, ...] = Field(min_length=1)
    whole: bool = Field(True, description="whether the whole can be had, too")


class Network(Strict):
    """How network devices look from inside."""

    interface: str = Field(pattern=r"^[a-z]{1,6}$", description="the number of the device is added")
    ranges: tuple[str, ...] = Field((), description="each device gets an address from each, such as 10.64.0.0/10")


class DeviceNode(Strict):
    """A device file in containers."""

    path: AbsolutePath
    host_path: AbsolutePath | None = Field(None, description="without it, the same as path")
    type: Literal["b", "c", "u", "p"] | None = None
    major: Number | None = None
    minor: Number | None = None
    file_mode: Number | None = None
    permissions: str | None = Field(None, pattern=r"^[rwm]{1,3}$")
    uid: Number | None = None
    gid: Number | None = None


class Mount(Strict):
    """A folder or file of the node in containers."""

    host_path: AbsolutePath
    container_path: AbsolutePath
    options: Texts = ()
    type: Text | None = None


class Hook(Strict):
    """A program that the container runtime starts."""

    hook_name: Literal["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"]
    path: AbsolutePath
    args: Texts = ()
    env: tuple[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*=")], ...] = ()
    timeout: Number | None = None


class ContainerEdits(Strict):
    """What else containers get, in the words of CDI; {index} and {name} become the device's own."""

    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
    additional_gids: tuple[Number, ...] = ()


class Attaching(Strict):
    """How the fake driver makes binding conditions true."""

    seconds: int = Field(1, ge=0, le=600, description="how long it takes")
    failures: int = Field(0, ge=0, le=1000, description="so many times it fails before it succeeds")


class Group(Strict):
    """Devices that are alike."""

    kind: str = Field(pattern=r"^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$", description="gpu, nic, or a name of your own")
    count: int = Field(ge=1, le=10_000)
    attributes: Attributes = Field({})
    capacity: Capacity = Field({})
    spread: dict[str, Annotated[tuple[Scalar, ...], Field(min_length=1)]] = Field(
        {}, description="values that are dealt out in equal parts"
    )
    per_device: tuple[Attributes, ...] = Field((), description="one mapping for each device")
    nodes: Patterns = ("*",)
    taints: tuple[Taint, ...] = Field((), max_length=16)
    allow_multiple_allocations: bool = Field(False, description="several claims may share a device")
    partitions: Partitions | None = None
    network: Network | None = None
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = Field((), max_length=4)
    binding_failure_conditions: tuple[str, ...] = Field((), max_length=4)
    attaching: Attaching | None = Field(None, description="absent means that others make the conditions true")
    container_edits: ContainerEdits | None = None


class Change(Strict):
    """How some devices differ from what their group says."""

    nodes: Patterns = ("*",)
    devices: Patterns = ("*",)
    attributes: Attributes = Field({})
    capacity: Capacity = Field({})
    taints: tuple[Taint, ...] = ()
    absent: bool = False


class Pool(Strict):
    """Devices that belong to no node."""

    name: str
    all_nodes: bool = False
    node_selector: dict[str, Any] | None = Field(None, description="as pods have it, with exactly one term")
    devices: tuple[Group, ...]


class HardwareSpec(Strict):
    """All that there is."""

    devices: tuple[Group, ...] = ()
    changes: tuple[Change, ...] = ()
    pools: tuple[Pool, ...] = ()


class Metadata(Strict):
    """The name, for people."""

    name: Name


class HardwareFile(Strict):
    """What the fake driver pretends to own."""

    api_version: Literal["dra-testbed/v1alpha1"]
    kind: Literal["Hardware"]
    metadata: Metadata
    spec: HardwareSpec

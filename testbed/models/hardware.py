"""The model of a hardware file, which its JSON Schema is generated from. The fake driver reads these files with a parser of its own."""

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
Patterns = Annotated[tuple[str, ...], Field(description="Names; * and ? match as in a shell.")]


class SemanticVersion(Strict):
    """An attribute that is compared as a version."""

    version: str = Field(description="Semantic version, such as 1.2.3.", max_length=64)


Scalar = bool | int | Annotated[str, Field(min_length=1, max_length=64)] | SemanticVersion
Attributes = dict[str, Scalar | list[Scalar]]


class ValidRange(Strict):
    """The amounts from min to max, in steps."""

    min: Quantity
    max: Quantity | None = None
    step: Quantity | None = None


class RequestPolicy(Strict):
    """The request policy of a capacity, as in the API."""

    default: Quantity = Field(description="Amount for requests that name none.")
    valid_values: tuple[Quantity, ...] = Field((), max_length=10)
    valid_range: ValidRange | None = None


class Amount(Strict):
    """A capacity with its request policy."""

    value: Quantity
    request_policy: RequestPolicy | None = None


Capacity = dict[str, Quantity | Amount]


class Taint(Strict):
    """A device taint."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "NoExecute", "None"]


class Profile(Strict):
    """One kind of partition."""

    name: str = Field(pattern=r"^[a-z0-9]([-.a-z0-9]{0,14}[a-z0-9])?$")
    count: int = Field(ge=1, description="Number of these partitions for each whole device.")
    takes: dict[str, Quantity] = Field(
        min_length=1, description="Amounts of the counters that each partition consumes."
    )
    attributes: Attributes = Field({}, description="Attributes in addition to those of the whole device.")
    capacity: Capacity = Field({}, description="Capacity of the partition. Default: what it consumes.")


class Partitions(Strict):
    """The partitions of a device and the counters that they share."""

    counters: dict[str, Quantity] = Field(min_length=1, max_length=32, description="Counters of the whole device.")
    profiles: tuple[Profile, ...] = Field(min_length=1)
    whole: bool = Field(True, description="Whether the whole device can be allocated too.")


class Network(Strict):
    """How network devices appear in containers."""

    interface: str = Field(
        pattern=r"^[a-z]{1,6}$", description="Prefix of the interface's name; the device's number follows."
    )
    ranges: tuple[str, ...] = Field(
        (), description="Networks, such as 10.64.0.0/10. Each device gets one address from each."
    )


class DeviceNode(Strict):
    """A device node in containers, as in CDI."""

    path: AbsolutePath
    host_path: AbsolutePath | None = Field(None, description="Path on the node. Default: the same as path.")
    type: Literal["b", "c", "u", "p"] | None = None
    major: Number | None = None
    minor: Number | None = None
    file_mode: Number | None = None
    permissions: str | None = Field(None, pattern=r"^[rwm]{1,3}$")
    uid: Number | None = None
    gid: Number | None = None


class Mount(Strict):
    """A folder or file of the node that is mounted into containers, as in CDI."""

    host_path: AbsolutePath
    container_path: AbsolutePath
    options: Texts = ()
    type: Text | None = None


class Hook(Strict):
    """A program that the container runtime starts, as in CDI."""

    hook_name: Literal["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"]
    path: AbsolutePath
    args: Texts = ()
    env: tuple[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*=")], ...] = ()
    timeout: Number | None = None


class ContainerEdits(Strict):
    """More edits of containers, as in CDI. {index} and {name} are replaced by the device's own."""

    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
    additional_gids: tuple[Number, ...] = ()


class Attaching(Strict):
    """How the fake driver sets binding conditions to true."""

    seconds: int = Field(1, ge=0, le=600, description="Seconds that attaching takes.")
    failures: int = Field(0, ge=0, le=1000, description="Number of failures before it succeeds.")


class Group(Strict):
    """A group of similar devices."""

    kind: str = Field(
        pattern=r"^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$", description="Kind of the devices: gpu, nic, or another name."
    )
    count: int = Field(ge=1, le=10_000, description="Number of devices on each node.")
    attributes: Attributes = Field({})
    capacity: Capacity = Field({})
    spread: dict[str, Annotated[tuple[Scalar, ...], Field(min_length=1)]] = Field(
        {}, description="Values that are distributed evenly over the devices."
    )
    per_device: tuple[Attributes, ...] = Field(
        (), description="Attributes of each single device, one mapping per device."
    )
    nodes: Patterns = ("*",)
    taints: tuple[Taint, ...] = Field((), max_length=16)
    allow_multiple_allocations: bool = Field(False, description="Whether several claims can share a device.")
    partitions: Partitions | None = None
    network: Network | None = None
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = Field((), max_length=4)
    binding_failure_conditions: tuple[str, ...] = Field((), max_length=4)
    attaching: Attaching | None = Field(
        None, description="How the driver sets the conditions to true. Absent: the driver does not set them."
    )
    container_edits: ContainerEdits | None = None


class Change(Strict):
    """What differs for some devices of a group."""

    nodes: Patterns = ("*",)
    devices: Patterns = ("*",)
    attributes: Attributes = Field({})
    capacity: Capacity = Field({})
    taints: tuple[Taint, ...] = ()
    absent: bool = Field(False, description="Whether these devices are missing.")


class Pool(Strict):
    """A pool of network-attached devices."""

    name: str
    all_nodes: bool = False
    node_selector: dict[str, Any] | None = Field(None, description="Node selector as in pods, with exactly one term.")
    devices: tuple[Group, ...]


class HardwareSpec(Strict):
    """The fake hardware of all nodes and of the network."""

    devices: tuple[Group, ...] = Field((), description="Devices of the nodes.")
    changes: tuple[Change, ...] = Field((), description="What differs on some nodes or for some devices.")
    pools: tuple[Pool, ...] = Field((), description="Network-attached devices.")


class Metadata(Strict):
    """The metadata of a hardware file."""

    name: Name


class HardwareFile(Strict):
    """The fake hardware of the fake drivers."""

    api_version: Literal["dra-testbed/v1alpha1"]
    kind: Literal["Hardware"]
    metadata: Metadata
    spec: HardwareSpec

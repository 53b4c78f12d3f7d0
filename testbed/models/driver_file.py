"""The driver file (kind DriverFile), which describes a driver under test and is written by its vendor.

`drivers` installs and finds a driver by it; suites learn from it how a container shows its device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from testbed.errors import UsageError
from testbed.models.driver_sections import Classes, Configuration, Control, Examples, Sharing, Toleration, check_regex
from testbed.models.features import EXEMPTIBLE, Exemption, Feature, derived_features
from testbed.models.names import DriverName, LabelName, ObjectName, Selector
from testbed.models.strict import Strict, existing_file, load

ExistingFile = Annotated[Path, AfterValidator(existing_file)]


def _check_probe_pattern(text: str) -> str:
    known = {"id", "name"} & re.compile(check_regex(text)).groupindex.keys()
    if not known:
        raise ValueError("needs a group named id or name, such as (?P<id>…)")
    if len(known) > 1:
        raise ValueError("has both a group id and a group name, but must have only one of them")
    return text


class Install(Strict):
    """How to install the driver."""

    manifests: tuple[ExistingFile, ...] = Field(
        min_length=1, description="Templates of the manifests, relative to this file."
    )
    built_in_image: bool = Field(
        False, description="Whether the variable `image` is set to the driver image that dra-testbed builds."
    )
    images: tuple[ExistingFile, ...] = Field((), description="Archives of images to load, relative to this file.")
    variables: dict[str, Any] = Field(default_factory=dict, description="Variables of the templates.")
    variables_from_files: dict[str, ExistingFile] = Field(
        default_factory=dict, description="Variables whose values are read from files, relative to this file."
    )

    @model_validator(mode="after")
    def _set_each_variable_once(self) -> Install:
        if self.built_in_image and "image" in self.variables:
            raise ValueError("sets the variable image, which builtInImage sets too")
        duplicates = sorted(self.variables.keys() & self.variables_from_files.keys())
        if duplicates:
            raise ValueError(f"sets the variable {duplicates[0]} both in variables and in variablesFromFiles")
        return self


class Pods(Strict):
    """How to find the driver's pods."""

    namespace: LabelName
    selector: Selector
    container: LabelName


class Nodes(Strict):
    """The nodes on which the driver must run. By default, all that accept the tests' pods."""

    selector: dict[str, str] = Field(default_factory=dict, description="Labels of these nodes.")
    tolerations: tuple[Toleration, ...] = Field(
        (), description="Tolerations of the tests' pods. Nodes with other taints are left out."
    )
    own_slices: bool = Field(
        True, description="Whether each node has ResourceSlices of its own. false: all devices are network-attached."
    )


class Probe(Strict):
    """How a container shows which devices it got."""

    command: tuple[str, ...] = Field(min_length=1, description="Command that runs in the container.")
    matches: Annotated[str, AfterValidator(_check_probe_pattern)] = Field(
        description="Regular expression for lines of the command's output. The group `id` is the value of identityAttribute; "
        "the group `name` is the device's name in the ResourceSlices of the node."
    )
    identity_attribute: str = Field(
        "", description="Attribute with a unique value for each device. Absent: there is none."
    )

    @model_validator(mode="after")
    def _identity(self) -> Probe:
        if not self.shows_names and not self.identity_attribute:
            raise ValueError("has a group id in matches, but no identityAttribute to compare it with")
        return self

    @property
    def shows_names(self) -> bool:
        """Return True if containers show the names of devices rather than an attribute."""
        return "name" in re.compile(self.matches).groupindex

    def ids(self, output: str) -> tuple[str, ...]:
        """Return what a command's output shows of devices, sorted: their names, or the values of the attribute."""
        group = "name" if self.shows_names else "id"
        return tuple(sorted(found[group] for found in re.finditer(self.matches, output, re.MULTILINE)))


class DriverSpec(Strict):
    """What the testbed needs to know about a driver."""

    driver: DriverName = Field(description="Name of the driver in ResourceSlices and claims.")
    device_class: ObjectName = Field(description="DeviceClass that selects the driver's ordinary devices.")
    install: Install | None = Field(None, description="How to install the driver. Absent: it is installed already.")
    companions: tuple[ExistingFile, ...] = Field(
        (),
        description="Driver files of drivers that are installed with this one and not judged. Their companions are ignored.",
    )
    pods: Pods
    nodes: Nodes = Nodes()
    probe: Probe
    features: tuple[Feature, ...] = Field((), description="Optional features of the driver that no other key declares.")
    exempt: tuple[Exemption, ...] = Field(
        (),
        description="Features that this kind of driver cannot have. The report lists them, and their requirements are not judged.",
    )
    examples: Examples = Examples()
    classes: Classes = Classes()
    sharing: Sharing | None = None
    other_devices: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Devices that deviceClass does not select: names of attributes with shell patterns (*, ?) of their values.",
    )
    configuration: Configuration | None = Field(None, description="Configuration of devices. Absent: it is not judged.")
    control: Control | None = Field(None, description="How tests change the hardware. Absent: it cannot be changed.")

    @model_validator(mode="after")
    def _needs_amounts_for_shared_devices(self) -> DriverSpec:
        if bool(self.classes.capacity) != bool(self.sharing):
            raise ValueError("has only one of classes.capacity and sharing, but needs both or neither")
        return self


class Metadata(Strict):
    """The metadata of a driver file."""

    name: LabelName


class DriverFile(Strict):
    """A driver file. Paths in it are absolute."""

    api_version: Literal["dra-testbed/v1alpha1"]
    kind: Literal["DriverFile"]
    metadata: Metadata
    spec: DriverSpec

    @property
    def name(self) -> str:
        """Return the name of the driver file."""
        return self.metadata.name

    @property
    def driver(self) -> str:
        """Return the driver's name in Kubernetes."""
        return self.spec.driver

    @property
    def device_class(self) -> str:
        """Return the DeviceClass of the driver's ordinary devices."""
        return self.spec.device_class

    @property
    def install(self) -> Install | None:
        """Return how to install the driver, or None if it is installed already."""
        return self.spec.install

    @property
    def companions(self) -> tuple[Path, ...]:
        """Return the driver files of the companions."""
        return self.spec.companions

    @property
    def hardware(self) -> Literal["synthetic", "unknown"]:
        """Return 'synthetic' for a driver that dra-testbed builds, otherwise 'unknown'."""
        return "synthetic" if self.spec.install and self.spec.install.built_in_image else "unknown"

    @property
    def pods(self) -> Pods:
        """Return how to find the driver's pods."""
        return self.spec.pods

    @property
    def nodes(self) -> Nodes:
        """Return the nodes on which the driver must run."""
        return self.spec.nodes

    @property
    def features(self) -> frozenset[str]:
        """Return all features of the driver: declared, derived from other keys, and those that every driver has unless exempt."""
        not_exempt = EXEMPTIBLE.keys() - self.spec.exempt
        return frozenset({*not_exempt, *self.spec.features, *derived_features(self.spec.model_dump(by_alias=True))})

    @property
    def control(self) -> Control | None:
        """Return how tests change the hardware, or None."""
        return self.spec.control

    @property
    def examples(self) -> Examples:
        """Return the attributes and capacities that tests request."""
        return self.spec.examples

    @property
    def configuration(self) -> Configuration | None:
        """Return how devices are configured, or None."""
        return self.spec.configuration

    @property
    def classes(self) -> Classes:
        """Return the classes of devices with optional features."""
        return self.spec.classes

    @property
    def sharing(self) -> Sharing | None:
        """Return the amounts for claims that share a device, or None."""
        return self.spec.sharing

    @property
    def other_devices(self) -> Mapping[str, tuple[str, ...]]:
        """Return attributes with value patterns of the devices that the class does not select."""
        return self.spec.other_devices

    @property
    def probe(self) -> Probe:
        """Return how a container shows its devices."""
        return self.spec.probe

    @property
    def printed_patterns(self) -> tuple[str, ...]:
        """Return the patterns of the lines that show devices and settings in a container."""
        known = self.spec.configuration
        return (self.spec.probe.matches, *((known.one.shows, known.other.shows) if known else ()))


def load_driver_file(path: Path) -> DriverFile:
    """Read a driver file. Raise UsageError if it has mistakes or a file that it names does not exist."""
    return load(path, DriverFile)


def load_companions(driver_file: DriverFile) -> tuple[DriverFile, ...]:
    """Read the driver files of a driver's companions. Raise UsageError if two have the same driver name or class."""
    found = tuple(load_driver_file(path) for path in driver_file.companions)
    for what in ("driver", "device_class"):
        names = [getattr(each, what) for each in (driver_file, *found)]
        duplicates = sorted({name for name in names if names.count(name) > 1})
        if duplicates:
            raise UsageError(
                f"driver file {driver_file.name} and its companions have the same {what.replace('_', ' ')} {duplicates[0]}",
                hint="give each companion a driver name and a DeviceClass of its own",
            )
    return found

"""The driver file (kind DriverFile): all that is known about a driver under test, written by whoever knows it.

`drivers` installs and finds a driver by it; suites read from it how a container shows its device.
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
        raise ValueError("has no group that is called id or name: (?P<id>…)")
    if len(known) > 1:
        raise ValueError("has a group id and a group name, of which it needs one")
    return text


class Install(Strict):
    """How the driver comes into a cluster."""

    manifests: tuple[ExistingFile, ...] = Field(min_length=1, description="templates, relative to this file")
    built_in_image: bool = Field(False, description="the variable `image` is the driver image that dra-testbed builds")
    images: tuple[ExistingFile, ...] = Field((), description="archives of images to load, relative to this file")
    variables: dict[str, Any] = Field(default_factory=dict, description="for the templates")
    variables_from_files: dict[str, ExistingFile] = Field(
        default_factory=dict, description="variables whose values are the contents of files, relative to this file"
    )

    @model_validator(mode="after")
    def _set_each_variable_once(self) -> Install:
        if self.built_in_image and "image" in self.variables:
            raise ValueError("sets the variable image, which builtInImage sets as well")
        twice = sorted(self.variables.keys() & self.variables_from_files.keys())
        if twice:
            raise ValueError(f"sets the variable {twice[0]} in variables and in variablesFromFiles")
        return self


class Pods(Strict):
    """Where the driver's pods are."""

    namespace: LabelName
    selector: Selector
    container: LabelName


class Nodes(Strict):
    """On which nodes the driver is expected, by their labels; {} means all that take the tests' pods."""

    selector: dict[str, str] = Field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = Field(
        (), description="taints of these nodes that the tests' pods tolerate; a node with any other is left out"
    )
    own_slices: bool = Field(
        True, description="each of them has ResourceSlices of its own; false if all devices belong to the network"
    )


class Probe(Strict):
    """How a container shows which device it got."""

    command: tuple[str, ...] = Field(min_length=1, description="run in the container")
    matches: Annotated[str, AfterValidator(_check_probe_pattern)] = Field(
        description="regular expression for lines of its output; the group `id` is the value of identityAttribute, "
        "the group `name` is the device's name in the ResourceSlices of its node"
    )
    identity_attribute: str = Field(
        "", description="an attribute that has another value for each device; absent means that there is none"
    )

    @model_validator(mode="after")
    def _identity(self) -> Probe:
        if not self.shows_names and not self.identity_attribute:
            raise ValueError("has a group id in matches, and no identityAttribute that has the same value")
        return self

    @property
    def shows_names(self) -> bool:
        """Whether containers show the names of devices, rather than an attribute of them."""
        return "name" in re.compile(self.matches).groupindex

    def ids(self, output: str) -> tuple[str, ...]:
        """What a command's output says of devices, sorted: their names, or the values of the attribute."""
        group = "name" if self.shows_names else "id"
        return tuple(sorted(found[group] for found in re.finditer(self.matches, output, re.MULTILINE)))


class DriverSpec(Strict):
    """What there is to know about a driver."""

    driver: DriverName
    device_class: ObjectName
    install: Install | None = Field(None, description="absent means that it is installed already")
    companions: tuple[ExistingFile, ...] = Field(
        (),
        description="driver files of other drivers that are installed beside this one and not judged; companions of theirs are left out",
    )
    pods: Pods
    nodes: Nodes = Nodes()
    probe: Probe
    features: tuple[Feature, ...] = Field(
        (), description="optional parts of DRA that the driver takes part in, and that no other key speaks of"
    )
    exempt: tuple[Exemption, ...] = Field(
        (),
        description="parts of DRA that this kind of driver cannot take part in; each costs it requirements, and the report says so",
    )
    examples: Examples = Examples()
    classes: Classes = Classes()
    sharing: Sharing | None = None
    other_devices: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="devices that deviceClass does not select: attributes with patterns of their values, as a shell has them",
    )
    configuration: Configuration | None = Field(None, description="absent means that no configuration is judged")
    control: Control | None = Field(None, description="absent means that its hardware cannot be changed")

    @model_validator(mode="after")
    def _amounts(self) -> DriverSpec:
        if bool(self.classes.capacity) != bool(self.sharing):
            raise ValueError("has one of classes.capacity and sharing, which need each other")
        return self


class Metadata(Strict):
    """The name of the description, for people and reports."""

    name: LabelName


class DriverFile(Strict):
    """A driver file, with the paths in it made absolute."""

    api_version: Literal["dra-testbed/v1alpha1"]
    kind: Literal["DriverFile"]
    metadata: Metadata
    spec: DriverSpec

    @property
    def name(self) -> str:
        """What people call the driver."""
        return self.metadata.name

    @property
    def driver(self) -> str:
        """Its name in Kubernetes."""
        return self.spec.driver

    @property
    def device_class(self) -> str:
        """The DeviceClass by which users ask for its devices."""
        return self.spec.device_class

    @property
    def install(self) -> Install | None:
        """How to install it; None when it is there already."""
        return self.spec.install

    @property
    def companions(self) -> tuple[Path, ...]:
        """The driver files of the drivers beside it."""
        return self.spec.companions

    @property
    def hardware(self) -> Literal["synthetic", "unknown"]:
        """What its devices are: the driver that dra-testbed builds only pretends to have them; of others nothing is known."""
        return "synthetic" if self.spec.install and self.spec.install.built_in_image else "unknown"

    @property
    def pods(self) -> Pods:
        """Where its pods are."""
        return self.spec.pods

    @property
    def nodes(self) -> Nodes:
        """On which nodes it is expected."""
        return self.spec.nodes

    @property
    def features(self) -> frozenset[str]:
        """The parts of DRA that it takes part in: declared, made possible to judge by the rest of the file, and not exempt."""
        usual = EXEMPTIBLE.keys() - self.spec.exempt
        return frozenset({*usual, *self.spec.features, *derived_features(self.spec.model_dump(by_alias=True))})

    @property
    def control(self) -> Control | None:
        """How its hardware is changed while it runs."""
        return self.spec.control

    @property
    def examples(self) -> Examples:
        """What suites may ask its devices for."""
        return self.spec.examples

    @property
    def configuration(self) -> Configuration | None:
        """How its devices are configured."""
        return self.spec.configuration

    @property
    def classes(self) -> Classes:
        """The classes of devices for optional parts of DRA."""
        return self.spec.classes

    @property
    def sharing(self) -> Sharing | None:
        """What claims that share a device may ask for."""
        return self.spec.sharing

    @property
    def other_devices(self) -> Mapping[str, tuple[str, ...]]:
        """How to know devices that its class does not select."""
        return self.spec.other_devices

    @property
    def probe(self) -> Probe:
        """How a container shows its device."""
        return self.spec.probe


def load_driver_file(path: Path) -> DriverFile:
    """Read a driver file; the manifests and images that it names must be there."""
    return load(path, DriverFile)


def load_companions(driver_file: DriverFile) -> tuple[DriverFile, ...]:
    """The drivers that are installed beside one; each is another driver, with a class of its own."""
    found = tuple(load_driver_file(path) for path in driver_file.companions)
    for what in ("driver", "device_class"):
        names = [getattr(each, what) for each in (driver_file, *found)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UsageError(
                f"driver file {driver_file.name}: it and its companions have the {what.replace('_', ' ')} {twice[0]} twice",
                hint="a companion is another driver, with names of its own",
            )
    return found

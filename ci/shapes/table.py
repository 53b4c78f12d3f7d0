"""The shapes of drivers: the driver file of each, its own requirements, and the mutant that these must catch. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from testbed import folders
from testbed.errors import UsageError, did_you_mean

FOLDER = folders.data("manifests") / "drivers/shapes"


@dataclass(frozen=True)
class Shape:
    """A kind of driver, played by the fake driver with the driver file of the same name in manifests/drivers/shapes."""

    name: str
    about: str
    own: tuple[
        str, ...
    ]  # requirements that judge what is particular about the shape; the run of a shape adds a profile to them
    twin: str  # a mutant with a fault that this shape makes likely
    caught_by: tuple[str, ...]  # the requirements that must fail on the twin, among all that run

    @property
    def driver_file(self) -> str:
        """Return the path of the driver file."""
        return str(FOLDER / f"{self.name}.yaml")


SHAPES: tuple[Shape, ...] = (
    Shape(
        "addresses-per-node",
        "PCI addresses are the identities of devices, and are the same on each node",
        own=("SELECT-001", "SELECT-002", "PREP-004", "PRESCHED-009", "TAINT-001", "CAP-001", "EXT-001", "STATUS-022"),
        twin="know-devices-by-name",
        caught_by=("PREP-004", "PRESCHED-009"),
    ),
    Shape(
        "devices-leave-slices",
        "devices have the same names on each node; the twin removes them from its slices while claims use them",
        own=("SLICE-018",),
        twin="unpublishes-devices-in-use",
        caught_by=("SLICE-018",),
    ),
    Shape(
        "device-nodes",
        "containers find devices by device nodes, and no attribute identifies them",
        own=("EXCL-001", "EXCL-002", "EXCL-003", "EXCL-004", "EXCL-005", "EXCL-006", "CDI-003"),
        twin="leak-to-restarted-containers",
        caught_by=("EXCL-003",),
    ),
)


def choose(names: list[str]) -> list[Shape]:
    """Return the shapes of these names, or all. UsageError for an unknown name."""
    known = [shape.name for shape in SHAPES]
    for name in names:
        if name not in known:
            raise UsageError(f"there is no shape {name}", hint=did_you_mean(name, known))
    return [shape for shape in SHAPES if not names or shape.name in names]

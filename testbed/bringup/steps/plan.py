"""What `up` would create, as data for `--plan`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from testbed.bringup.resolved_config import ResolvedConfig
from testbed.drivers import all_manifests
from testbed.kube.client import Object

_OUR_IMAGE = "the image that dra-testbed builds"


@dataclass(frozen=True)
class Plan:
    """A testbed that does not exist yet. `rights`, `left_out`, `gates` and `remarks` are only for an existing cluster."""

    cluster: str
    kubernetes: str
    nodes: int
    driver: str
    objects: tuple[str, ...]
    rights: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    gates: tuple[str, ...] | None = None
    remarks: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the plan for `-o json`."""
        return {
            "cluster": self.cluster,
            "kubernetes": self.kubernetes,
            "nodes": self.nodes,
            "driver": self.driver,
            "objects": self.objects,
            "rights": self.rights,
            "leftOut": self.left_out,
            "dynamicResourceGates": self.gates,
            "remarks": self.remarks,
        }

    def as_lines(self) -> Iterator[str]:
        """Yield the lines that a user reads."""
        yield f"cluster      {self.cluster}; Kubernetes {self.kubernetes}, {self.nodes} nodes"
        yield f"driver       {self.driver}"
        for what, lines in (("makes", self.objects), ("needs", self.rights), ("leaves out", self.left_out)):
            yield from (f"{what:<12} {line}" for line in lines)
        if self.gates is not None:
            yield f"gates        {', '.join(self.gates) or 'no DRA feature gate is on'}"
        yield from (f"note         {each}" for each in self.remarks)


def objects_of(resolved: ResolvedConfig) -> list[Object]:
    """Return the objects that installing the drivers creates."""
    if not resolved.drivers:
        return []
    config = resolved.config
    return all_manifests(
        resolved.drivers,
        image=config.images.driver or _OUR_IMAGE,
        hardware=config.hardware,
        kubernetes=resolved.lock.kubernetes,
    )


def describe_objects(objects: list[Object]) -> tuple[str, ...]:
    """Return the kind, the name and the namespace of each object."""
    return tuple(map(_describe, objects))


def describe_driver(resolved: ResolvedConfig, *, installs: bool) -> str:
    """Return which driver is installed, or judged without installing it, and its companions."""
    if resolved.driver_file is None:
        return "none"
    how = "is installed" if installs and resolved.driver_file.install else "is judged as installed there"
    companions = [each.driver for each in resolved.drivers[1:]] if installs else []
    return f"{resolved.driver_file.driver} {how}" + (f"; with companion {', '.join(companions)}" if companions else "")


def _describe(each: Object) -> str:
    namespace = each["metadata"].get("namespace")
    return f"{each['kind']} {each['metadata']['name']}" + (f" in namespace {namespace}" if namespace else "")

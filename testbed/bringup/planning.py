"""What `up` and `run` would make, said beforehand. Changes nothing; a cluster that is there already is looked at. Called by `--plan`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.bringup import inspection, steps
from testbed.bringup.inspection import Look
from testbed.bringup.steps import Context
from testbed.drivers import manifests_together
from testbed.kube import features, rights
from testbed.kube.client import Object
from testbed.models.config import TestbedConfig
from testbed.progress import Silent
from testbed.providers.base import Capability, FindsClusters

_OURS = "the image that dra-testbed builds"


@dataclass(frozen=True)
class Plan:
    """A testbed that is not there yet. `rights` and `left_out` are about a cluster of somebody else: what is needed, what cannot be."""

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
        """For programs."""
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
        """For people."""
        yield f"cluster      {self.cluster}; Kubernetes {self.kubernetes}, {self.nodes} nodes"
        yield f"driver       {self.driver}"
        for what, lines in (("makes", self.objects), ("needs", self.rights), ("leaves out", self.left_out)):
            yield from (f"{what:<12} {line}" for line in lines)
        if self.gates is not None:
            yield f"gates        {', '.join(self.gates) or 'none of DRA is on'}"
        yield from (f"note         {each}" for each in self.remarks)


def check(config: TestbedConfig) -> None:
    """Refuse what is wrong in the request itself, whatever host or cluster it is for."""
    steps.request(config, Path(), Silent())


@contextlib.contextmanager
def planned(config: TestbedConfig) -> Iterator[tuple[Plan, Look | None]]:
    """The plan, and the cluster where it is there already. What `up` would refuse without touching this host is refused here too."""
    context = steps.request(config, Path(), Silent())
    if not isinstance(context.provider, FindsClusters):
        yield _to_be_made(context), None
        return
    look = inspection.look_at(context.provider, steps.spec_of(context))
    remarks = inspection.refuse_what_will_fail(look, config, context.drivers, steps.workload_image(config))
    yield replace(_as_found(context, context.provider, look), remarks=tuple(remarks)), look


def _to_be_made(context: Context) -> Plan:
    config = context.config
    cluster = f"{config.name}, made by provider {config.provider}"
    objects = tuple(map(_told, _objects(context)))
    return Plan(cluster, context.lock.kubernetes, config.nodes, _driver(context, installs=True), objects)


def _as_found(context: Context, provider: FindsClusters, look: Look) -> Plan:
    able = look.cluster.capabilities
    makes = Capability.MAKE_OBJECTS in able
    objects = _objects(context) if makes else []
    found = features.read(look.kube)
    needed = [*provider.needs(steps.spec_of(context)), *inspection.install_rights(look.kube, objects)]
    return Plan(
        provider.describe(steps.spec_of(context)),
        found.version,
        len(look.cluster.nodes()),
        _driver(context, installs=makes),
        tuple(map(_told, objects)),
        tuple(rights.summary(needed)),
        tuple(f"what needs {each}" for each in sorted(set(Capability) - able)),
        None
        if found.gates is None
        else tuple(sorted(name for name, on in found.gates.items() if on and _of_dra(name))),
    )


def _objects(context: Context) -> list[Object]:
    if not context.drivers:
        return []
    image = context.config.images.driver or _OURS
    return manifests_together(context.drivers, image=image, hardware=context.config.hardware)


def _driver(context: Context, *, installs: bool) -> str:
    if context.driver_file is None:
        return "none"
    how = "is installed" if installs and context.driver_file.install else "is judged as it is there"
    beside = [each.driver for each in context.drivers[1:]] if installs else []
    return f"{context.driver_file.driver} {how}" + (f"; beside it {', '.join(beside)}" if beside else "")


def _told(each: Object) -> str:
    home = each["metadata"].get("namespace")
    return f"{each['kind']} {each['metadata']['name']}" + (f" in namespace {home}" if home else "")


def _of_dra(gate: str) -> bool:
    return gate.startswith(("DRA", "DynamicResource"))

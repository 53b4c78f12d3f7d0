"""What a driver's manifests request of the host of its nodes, for the note that `up` prints. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from testbed.drivers.manifests.pods import containers, pod_specs
from testbed.kube.client import Object


def host_access(objects: Iterable[Object]) -> list[str]:
    """Return what containers request that reaches the node itself, sorted, such as hostPID."""
    return sorted({each for found in objects for spec in pod_specs(found) for each in _requested(spec)})


def _requested(spec: Object) -> Iterator[str]:
    yield from (name for name in ("hostPID", "hostIPC", "hostNetwork") if spec.get(name))
    for each in containers(spec):
        context = each.get("securityContext") or {}
        if context.get("privileged"):
            yield "a privileged container"
        yield from (f"the capability {name}" for name in (context.get("capabilities") or {}).get("add") or ())
    for volume in spec.get("volumes") or ():
        if volume.get("hostPath"):
            yield f"the node's {volume['hostPath'].get('path')}"

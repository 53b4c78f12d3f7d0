"""What a driver's manifests request of the host of its nodes, for the note that `up` prints. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from testbed.kube.client import Object


def host_access(objects: Iterable[Object]) -> list[str]:
    """Return what containers request that reaches the node itself, sorted, such as hostPID."""
    return sorted({each for found in objects for spec in _pod_specs(found) for each in _requested(spec)})


def _pod_specs(found: Object) -> Iterator[Object]:
    spec: Object = found.get("spec") or {}
    if found.get("kind") == "Pod":
        yield spec
    job: Object = spec.get("jobTemplate") or {"spec": spec}  # a CronJob
    template = (job.get("spec") or {}).get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        yield template["spec"]


def _requested(spec: Object) -> Iterator[str]:
    yield from (name for name in ("hostPID", "hostIPC", "hostNetwork") if spec.get(name))
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    for each in containers:
        context = each.get("securityContext") or {}
        if context.get("privileged"):
            yield "a privileged container"
        yield from (f"the capability {name}" for name in (context.get("capabilities") or {}).get("add") or ())
    for volume in spec.get("volumes") or ():
        if volume.get("hostPath"):
            yield f"the node's {volume['hostPath'].get('path')}"

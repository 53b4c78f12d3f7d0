"""Finds the pods that an object creates. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.kube.client import Object


def pod_specs(found: Object) -> Iterator[Object]:
    """Yield the specs of the pods that an object creates: of a Pod, or of a workload's template."""
    spec: Object = found.get("spec") or {}
    if found.get("kind") == "Pod":
        yield spec
    job: Object = spec.get("jobTemplate") or {"spec": spec}  # a CronJob
    template = (job.get("spec") or {}).get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        yield template["spec"]


def containers(spec: Object) -> Iterator[Object]:
    """Yield the containers of a pod's spec, init containers first."""
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()

"""Objects that the mutants of the cluster change, and how tests send them."""

from __future__ import annotations

from typing import Any

import yaml

from testbed.kube.client import Kube

Object = dict[str, Any]


DEVICES = """
requests:
- {name: one, exactly: {deviceClassName: c, count: 2, adminAccess: true, selectors: [{cel: {expression: "true"}}]}}
- {name: two, exactly: {deviceClassName: c, selectors: [{cel: {expression: "true"}}]}}
constraints:
- {matchAttribute: a.example/b}
"""


ALLOCATION = """
devices: {results: [{request: one, driver: d.example, pool: p, device: x}]}
nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [worker]}]}]}
"""


ABSENT = "dra-testbed.example/absent:none"


POD = """
resourceClaims: [{name: a, resourceClaimName: a}]
containers:
- {name: with, image: i, resources: {claims: [{name: a}]}}
- {name: without, image: i}
"""


def claim(name: str, devices: str = DEVICES, **metadata: Any) -> Object:
    spec = {"devices": yaml.safe_load(devices)}
    meta = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec}


def template(name: str, devices: str = DEVICES) -> Object:
    made = claim(name, devices)
    return {**made, "kind": "ResourceClaimTemplate", "spec": {"spec": made["spec"]}}


def core_object(kind: str, name: str, spec: Object | None = None) -> Object:
    made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
    return {**made, "spec": spec} if spec else made


def status(**fields: Any) -> Object:
    return {**claim("allocated"), "status": {"allocation": yaml.safe_load(ALLOCATION), **fields}, "spec": None}


def dry_run(kube: Kube, manifest: Object) -> Object:
    """Return the object that the API server would store."""
    subresource = "status" if "status" in manifest else None
    manifest = {key: value for key, value in manifest.items() if value is not None}
    return kube.apply(manifest, dry_run=True, subresource=subresource)


def requests(stored: Object) -> list[Object]:
    spec = stored["spec"].get("spec", stored["spec"])
    return [each.get("exactly", each) for each in spec["devices"]["requests"]]


def resource(kind: str, spec: Object) -> Object:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "new"}, "spec": spec}


def condition(kind: str, value: str) -> Object:
    since = "2026-01-01T00:00:00Z"
    return {"type": kind, "status": value, "reason": "R", "message": "", "lastTransitionTime": since}


def status_with_condition(kind: str, value: str) -> Object:
    device = {"driver": "d.example", "pool": "p", "device": "x", "conditions": [condition(kind, value)]}
    return {key: value for key, value in status(devices=[device]).items() if value is not None}

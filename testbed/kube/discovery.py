"""Finds all kinds that an API server serves, and all objects with a label. `down` and `sweep` use it, so that no kind is missed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from testbed.errors import ApiError
from testbed.kube import answers
from testbed.kube.client import Kube, Object, Resource

_REMOVABLE = {"list", "delete"}
# Kinds whose objects expire by themselves.
_TRANSIENT = {"Event"}


@dataclass(frozen=True)
class LabelledObjects:
    """Objects with a label, the kinds that the user may not list, and the versions of API groups that do not answer."""

    objects: tuple[Object, ...]
    forbidden: tuple[Resource, ...] = ()
    unavailable: tuple[str, ...] = ()


def find_labelled(kube: Kube, selector: str) -> LabelledObjects:
    """Return all objects with these labels (`key=value,key=value`). Checks the labels too: aggregated APIs may ignore selectors."""
    wanted = dict(pair.split("=", 1) for pair in selector.split(","))
    objects: list[Object] = []
    forbidden: list[Resource] = []
    resources, unavailable = removable_resources(kube)
    for each in resources:
        try:
            answer = kube.list_path(each.path(None), {"labelSelector": selector}, timeout=30)
        except ApiError as no:
            if no.status not in (403, 404, 405):
                raise
            forbidden += [each] if no.status == 403 else []
            continue
        found = (item for item in answer if _labels(item).items() >= wanted.items())
        objects += [{**item, "apiVersion": each.api_version, "kind": each.kind} for item in found]
    return LabelledObjects(tuple(objects), tuple(forbidden), tuple(unavailable))


def removable_resources(kube: Kube) -> tuple[list[Resource], list[str]]:
    """Return each kind whose objects can be listed and deleted, once, and the versions of API groups that do not answer."""
    found: dict[tuple[str, str], Resource] = {}
    unavailable: list[str] = []
    for group, versions in _groups(kube):
        for version in versions:
            try:
                path = f"/apis/{version}" if group else f"/api/{version}"
                served = answers.resources(kube.request("GET", path), f"GET {path}")
            except ApiError:  # one unavailable aggregated API must not hide all others
                unavailable.append(version)
                continue
            for each in served:
                if _is_removable(each):
                    resource = Resource(version, each["name"], each["kind"], each["namespaced"])
                    found.setdefault((group, each["kind"]), resource)
    return list(found.values()), unavailable


def _groups(kube: Kube) -> Iterator[tuple[str, list[str]]]:
    """Yield each API group with its versions, the preferred one first."""
    yield "", ["v1"]
    yield from answers.groups(kube.request("GET", "/apis"), "GET /apis")


def _labels(item: Object) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def _is_removable(resource: dict[str, Any]) -> bool:
    is_subresource = "/" in resource["name"]
    return not is_subresource and resource["kind"] not in _TRANSIENT and set(resource.get("verbs", ())) >= _REMOVABLE

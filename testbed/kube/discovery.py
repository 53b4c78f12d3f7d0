"""All kinds that an API server serves, and all objects with a label, of whatever kind: `down` and `sweep` must forget nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from testbed.errors import ApiError
from testbed.kube.client import Kube, Object, Resource

_REMOVABLE = {"list", "delete"}
# Kinds that another list shows as well, or that end by themselves.
_TRANSIENT = {"Event"}


@dataclass(frozen=True)
class LabelledObjects:
    """Objects, and what could not be seen: `refused` are kinds that we may not list, `silent` are versions of groups that do not answer."""

    objects: tuple[Object, ...]
    refused: tuple[Resource, ...] = ()
    silent: tuple[str, ...] = ()


def find_labelled(kube: Kube, selector: str) -> LabelledObjects:
    """Every object with these labels (`key=value,key=value`). An API server of somebody's that ignores selectors is not believed."""
    wanted = dict(pair.split("=", 1) for pair in selector.split(","))
    objects: list[Object] = []
    refused: list[Resource] = []
    resources, silent = removable_resources(kube)
    for each in resources:
        try:
            answer = kube.request("GET", each.path(None), query={"labelSelector": selector}, timeout=30)
        except ApiError as no:
            if no.status not in (403, 404, 405):
                raise
            refused += [each] if no.status == 403 else []
            continue
        found = (item for item in answer.get("items") or () if _labels(item).items() >= wanted.items())
        objects += [{"apiVersion": each.api_version, "kind": each.kind, **item} for item in found]
    return LabelledObjects(tuple(objects), tuple(refused), tuple(silent))


def removable_resources(kube: Kube) -> tuple[list[Resource], list[str]]:
    """Where the kinds live whose objects can be listed and deleted, each once; and the groups that do not answer."""
    found: dict[tuple[str, str], Resource] = {}
    silent: list[str] = []
    for group, versions in _groups(kube):
        for version in versions:
            try:
                served = kube.request("GET", f"/apis/{version}" if group else f"/api/{version}")["resources"]
            except ApiError:  # an aggregated API whose server is away must not keep us from all others
                silent.append(version)
                continue
            for each in served:
                if _is_removable(each):
                    resource = Resource(version, each["name"], each["kind"], each["namespaced"])
                    found.setdefault((group, each["kind"]), resource)
    return list(found.values()), silent


def _groups(kube: Kube) -> Iterator[tuple[str, list[str]]]:
    """Each group with its versions, the preferred one first."""
    yield "", ["v1"]
    for group in kube.request("GET", "/apis")["groups"]:
        preferred = group["preferredVersion"]["groupVersion"]
        others = [each["groupVersion"] for each in group["versions"]]
        yield group["name"], list(dict.fromkeys([preferred, *others]))


def _labels(item: Object) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def _is_removable(resource: dict[str, Any]) -> bool:
    whole = "/" not in resource["name"] and resource["kind"] not in _TRANSIENT
    return whole and set(resource.get("verbs", ())) >= _REMOVABLE

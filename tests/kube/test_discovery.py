from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import ApiError
from testbed.kube.client import Kube
from testbed.kube.discovery import find_labelled, removable_resources
from tests.fakes import api_server
from tests.fakes.api_server import ApiServer

FORBIDDEN = (403, {"reason": "Forbidden", "message": "no"})


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server.running() as made:
        for path in ("v1/namespaces", "v1/pods", "v1/configmaps"):
            made.answers[f"GET /api/{path}"] = (200, {"items": []})
        for path in ("apps/v1/daemonsets", "resource.k8s.io/v1/resourceslices", "resource.k8s.io/v1/deviceclasses"):
            made.answers[f"GET /apis/{path}"] = (200, {"items": []})
        yield made


@pytest.fixture
def kube(server: ApiServer, tmp_path: Path) -> Kube:
    return Kube(server.kubeconfig(tmp_path))


def _served(*resources: tuple[str, str, list[str]]) -> Any:
    listed = [{"name": name, "kind": kind, "namespaced": True, "verbs": verbs} for name, kind, verbs in resources]
    return 200, {"resources": listed}


def test_each_kind_is_found_once_in_the_preferred_version(server: ApiServer, kube: Kube) -> None:
    both = [{"groupVersion": "a.example/v1"}, {"groupVersion": "a.example/v2"}]
    group = {"name": "a.example", "versions": both, "preferredVersion": both[1]}
    server.answers["GET /apis"] = (200, {"groups": [group]})
    every = ["list", "delete"]
    server.answers["GET /apis/a.example/v1"] = _served(("as", "A", every), ("olds", "Old", every))
    server.answers["GET /apis/a.example/v2"] = _served(
        ("as", "A", every), ("as/status", "A", every), ("reviews", "Review", ["create"])
    )
    found = [(each.api_version, each.kind) for each in removable_resources(kube)[0] if each.api_version != "v1"]
    assert found == [("a.example/v2", "A"), ("a.example/v1", "Old")]


def test_an_unavailable_api_group_does_not_hide_others(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /apis/apps/v1"] = (503, {"message": "away"})
    found, silent = removable_resources(kube)
    assert silent == ["apps/v1"]
    assert "ResourceSlice" in {each.kind for each in found}


def test_objects_without_the_labels_are_ignored(server: ApiServer, kube: Kube) -> None:
    mine, theirs = ({"metadata": {"name": name, "labels": {"id": name}}} for name in ("mine", "theirs"))
    server.answers["GET /api/v1/configmaps"] = (200, {"items": [mine, theirs, {"metadata": {"name": "bare"}}]})
    found = find_labelled(kube, "id=mine").objects
    assert [(each["apiVersion"], each["kind"], each["metadata"]["name"]) for each in found] == [
        ("v1", "ConfigMap", "mine")
    ]


def test_kinds_that_may_not_be_listed_are_reported(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /api/v1/pods"] = FORBIDDEN
    assert [each.plural for each in find_labelled(kube, "a=b").forbidden] == ["pods"]


def test_a_server_error_is_raised(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /api/v1/pods"] = (500, {"message": "oops"})
    with pytest.raises(ApiError, match="oops"):
        find_labelled(kube, "a=b")

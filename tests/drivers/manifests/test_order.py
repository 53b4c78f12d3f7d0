from __future__ import annotations

from typing import Any

from testbed.drivers.manifests.order import in_order, undeclared_namespaces


def _object(kind: str, name: str, namespace: str = "") -> Any:
    return {"kind": kind, "metadata": {"name": name, **({"namespace": namespace} if namespace else {})}}


def test_what_others_need_comes_first_and_the_rest_stays_in_order() -> None:
    kinds = ["DaemonSet", "ServiceAccount", "ConfigMap", "CustomResourceDefinition", "ClusterRole", "Namespace"]

    ordered = in_order(_object(kind, "x") for kind in kinds)

    assert [each["kind"] for each in ordered] == [
        "Namespace", "CustomResourceDefinition", "ServiceAccount", "DaemonSet", "ConfigMap", "ClusterRole",
    ]  # fmt: skip


def test_namespaces_that_no_object_creates_are_found() -> None:
    objects = [
        _object("Namespace", "own"),
        _object("Pod", "a", "own"),
        _object("Pod", "b", "other"),
        _object("Node", "n"),
    ]

    assert [each["metadata"]["name"] for each in undeclared_namespaces(objects, "drivers")] == ["drivers", "other"]

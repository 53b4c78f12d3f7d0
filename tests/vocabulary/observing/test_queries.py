"""The cause that a pod gets no device comes from the driver's slices, its pods and all claims."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed import process
from testbed.errors import ApiError
from testbed.kube.client import Object
from testbed.providers.base import Capability
from testbed.vocabulary.observing.queries import diagnose_pod
from testbed.vocabulary.world import World
from tests.fakes.cluster import DEVICES_PER_NODE, DRIVER, NODES

Make = Callable[..., World]


def _pod(**changed: Any) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes: 2 cannot allocate all claims."}
    made = {"metadata": {"name": "p", "namespace": "mine"}, "spec": {}, "status": {"conditions": [condition]}}
    return made | changed


def _take(here: World, *devices: tuple[str, str]) -> None:
    kube: Any = here.kube
    kube.put("Namespace", "mine", metadata={"labels": here.owner.mark({"metadata": {}})["metadata"]["labels"]})
    for number, (node, device) in enumerate(devices):
        result = {"request": "r", "driver": DRIVER, "pool": node, "device": device}
        kube.put("ResourceClaim", f"c{number}", "mine", status={"allocation": {"devices": {"results": [result]}}})


def test_a_missing_driver_is_the_cause(world: Make) -> None:
    found = diagnose_pod(world("slices-missing"), "mine", "p", _pod())
    assert found.cause == (
        f"{DRIVER} publishes no ResourceSlice on node-1 and node-2; "
        "no pod of the driver (app=fake-gpu-driver in namespace dra-testbed-driver) exists"
    )
    assert not found.by_environment


def test_the_claims_of_all_allocated_devices_are_named(world: Make) -> None:
    here = world()
    _take(here, *((node, f"gpu-{index}") for node in NODES for index in range(DEVICES_PER_NODE)))
    assert diagnose_pod(here, "mine", "p", _pod()).cause == (
        f"no free device fits; class {DRIVER} has 8 devices on these nodes, 8 of them allocated, "
        "to claims mine/c0, mine/c1, mine/c2 and others"
    )


def test_free_devices_do_not_fit(world: Make) -> None:
    here = world()
    kube: Any = here.kube
    kube.objects["ResourceSlice", "default", "slice-node-1"]["spec"]["devices"][3]["attributes"]["purpose"] = {
        "string": "taints"
    }
    _take(here, ("node-1", "gpu-0"))
    assert diagnose_pod(here, "mine", "p", _pod()).cause == (
        f"no free device fits; class {DRIVER} has 7 devices on these nodes, 1 of them allocated, to claims mine/c0, "
        "and there are 1 of other classes"
    )


def test_a_class_without_devices(world: Make) -> None:
    here = world()
    kube: Any = here.kube
    for node in NODES:
        for device in kube.objects["ResourceSlice", "default", f"slice-{node}"]["spec"]["devices"]:
            device["attributes"]["purpose"] = {"string": "taints"}
    expected = f"no free device fits; class {DRIVER} has no device on these nodes, and there are 8 of other classes"
    assert diagnose_pod(here, "mine", "p", _pod()).cause == expected


def _warned(here: World, message: str) -> Object:
    kube: Any = here.kube
    about = {"kind": "Pod", "name": "p"}
    kube.put(
        "Event",
        "p.1",
        "mine",
        type="Warning",
        reason="FailedPrepareDynamicResources",
        message=message,
        involvedObject=about,
    )
    return _pod(spec={"nodeName": "node-1"}, status={"phase": "Pending"})


@pytest.mark.parametrize(
    "message",
    [
        "DRA driver x is not registered",
        "NodePrepareResources: rpc error: code = Unavailable desc = connection error: x",
    ],
)
def test_the_driver_pod_is_looked_for_when_the_driver_is_unreachable(world: Make, message: str) -> None:
    here = world()
    assert (
        "; no pod of the driver (app=fake-gpu-driver in"
        in diagnose_pod(here, "mine", "p", _warned(here, message)).cause
    )


def test_the_events_are_the_cause_when_the_drivers_pods_may_not_be_listed(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world()
    pod, see = _warned(here, "DRA driver x is not registered"), here.kube.list

    def seen(version: str, kind: str, *where: Any, **selectors: Any) -> list[Object]:
        if kind == "Pod":
            raise ApiError("GET", 403, "Forbidden", "no")
        return see(version, kind, *where, **selectors)

    monkeypatch.setattr(here.kube, "list", seen)
    assert diagnose_pod(here, "mine", "p", pod).cause.startswith(
        "the driver is not registered with the kubelet of this node"
    )


def test_slices_that_are_missing_on_the_pods_node_are_named_before_the_refused_prepare(world: Make) -> None:
    here = world()
    kube: Any = here.kube
    del kube.objects["ResourceSlice", "default", "slice-node-1"]
    pod = _warned(here, "NodePrepareResources failed for ResourceClaim c: device not found")
    assert diagnose_pod(here, "mine", "p", pod).cause == (
        f"{DRIVER} publishes no ResourceSlice on node-1; "
        "the driver refused to prepare the claim, or its response lacks the claim"
    )


@pytest.mark.parametrize(
    ("changed", "by_environment"), [({}, True), ({"needs": ("nri",)}, False), ({"exempt": ("cdi",)}, False)]
)
def test_a_sandbox_is_the_drivers_if_it_works_with_nri_or_without_cdi(
    world: Make, changed: dict[str, Any], by_environment: bool
) -> None:
    here = world()
    spec = here.driver_file.spec.model_copy(update=changed)
    here = replace(here, driver_file=here.driver_file.model_copy(update={"spec": spec}))
    kube: Any = here.kube
    pod = _warned(here, "Failed to create pod sandbox: rpc error: code = Unknown desc = x")
    kube.objects["Event", "mine", "p.1"]["reason"] = "FailedCreatePodSandBox"
    assert diagnose_pod(here, "mine", "p", pod).by_environment is by_environment


def test_unresolvable_cdi_devices_are_explained_by_the_files_of_the_node(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.vocabulary.cluster.cdi_files.FOLDERS", (str(tmp_path),))
    node: Any = SimpleNamespace(name="node-1", run=lambda *argv, check=True: process.run(argv, check=check))
    cluster: Any = SimpleNamespace(capabilities={Capability.RUN_ON_NODE}, nodes=lambda: [node])
    here = replace(world(), cluster=cluster)
    text = "failed to create containerd container: CDI device injection failed: unresolvable CDI devices a/b=c, a/b=d"
    waiting = {"name": "c", "state": {"waiting": {"reason": "CreateContainerError", "message": text}}}
    pod = _pod(spec={"nodeName": "node-1"}, status={"phase": "Pending", "containerStatuses": [waiting]})
    found = diagnose_pod(here, "mine", "p", pod)
    assert found.cause == "no CDI file on node-1 defines a/b=c, which the driver returned"
    assert found.by_driver
    for name in ("one", "other"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"kind": "a/b", "devices": [{"name": "d", "env": [name]}]}))
    assert "define a/b=d with different content on node-1" in diagnose_pod(here, "mine", "p", pod).cause
    unknown = diagnose_pod(replace(here, cluster=None), "mine", "p", pod)
    assert unknown.cause == "the driver returned a CDI ID that the CDI files on the node do not define"

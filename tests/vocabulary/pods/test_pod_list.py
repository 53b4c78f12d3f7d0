from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testbed.drivers.published.slices import Device
from testbed.vocabulary.checked_sets import NONE
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.pods.pod_list import Pods
from testbed.vocabulary.world import World
from tests.fakes import cluster

Make = Callable[..., World]


def test_the_devices_that_one_container_of_each_pod_sees(world: Make) -> None:
    here = world()
    kube: Any = here.kube
    for name in ("a", "b"):
        kube.put("Pod", name, "here", spec={"nodeName": "node-1", "containers": [{"name": "one"}, {"name": "other"}]})
        kube.outputs |= {f"{name}/one": "GPU_DEVICE_GPU_0_UUID=node-1-uuid-0\n", f"{name}/other": ""}
    pods = Pods([Pod(here, "here", "a"), Pod(here, "here", "b")])
    seen = frozenset({Device(cluster.DRIVER, "node-1", "gpu-0")})
    assert pods.seen_devices == pods.seen_by("one") == {"a": seen, "b": seen}
    assert pods.seen_by("other") == {"a": NONE, "b": NONE}


def test_the_devices_in_the_log_of_a_container_of_each_pod(world: Make) -> None:
    here = world()
    kube: Any = here.kube
    for index, name in enumerate(("a", "b")):
        kube.put("Pod", name, "here", spec={"nodeName": "node-1", "containers": [{"name": "c"}]})
        kube.log_texts |= {f"{name}/c": f"GPU_DEVICE_GPU_{index}_UUID=node-1-uuid-{index}\n"}
    pods = Pods([Pod(here, "here", "a"), Pod(here, "here", "b")])
    printed = {name: {Device(cluster.DRIVER, "node-1", f"gpu-{index}")} for index, name in enumerate(("a", "b"))}
    assert pods.printed_by("c") == printed


def test_the_properties_of_several_pods(world: Make) -> None:
    here = world()
    kube: Any = here.kube
    result = {"request": "r", "driver": "d", "pool": "node-1"}
    for index, name in enumerate(("a", "b")):
        claimed = {**result, "device": f"gpu-{index}"}
        kube.put("ResourceClaim", f"c-{name}", "here", status={"allocation": {"devices": {"results": [claimed]}}})
        spec = {"nodeName": "node-1", "resourceClaims": [{"name": "x", "resourceClaimName": f"c-{name}"}]}
        kube.put("Pod", name, "here", spec=spec)
    pods = Pods([Pod(here, "here", "a"), Pod(here, "here", "b")])
    assert pods.claims == {"c-a", "c-b"}
    assert pods.nodes == {"node-1"}
    assert pods.all_devices == {Device("d", "node-1", "gpu-0"), Device("d", "node-1", "gpu-1")}
    assert [each.pod.name for each in pods.containers("c")] == ["a", "b"]

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testbed.drivers.slices import Device
from testbed.vocabulary.groups import Pods
from testbed.vocabulary.pods import Pod
from testbed.vocabulary.world import World

Make = Callable[..., World]


def test_what_several_pods_have_together(world: Make) -> None:
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

"""The feature gates that a client without access to metrics can see on a real API server, switched on and off."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed import binaries
from testbed.kube import features
from tests.e2e.api_server import MINORS, ApiServer, kube_client, running

GATES = (
    "DRAExtendedResource", "DRAConsumableCapacity", "DRADeviceTaints", "DRAPartitionableDevices", "DRADeviceBindingConditions",
)  # fmt: skip


@pytest.mark.parametrize("wanted", [True, False], ids=["on", "off"])
@pytest.mark.parametrize("minor", MINORS)
def test_visible_gates_match_the_metrics(tmp_path: Path, minor: str, wanted: bool) -> None:
    known = binaries.lock_for(minor).gates
    settings = {gate: wanted for gate in GATES if not known[gate].locked}
    settings |= {name: False for name in known if not wanted and set(known[name].needs) & settings.keys()}
    with running(ApiServer(tmp_path, minor, gates=settings)) as server:
        kube = kube_client(server)
        reported, visible = features.gates(kube), features.visible_gates(kube, features.version(kube), dry_runs=True)
        left = kube.list("resource.k8s.io/v1", "ResourceClaim") + kube.list("resource.k8s.io/v1", "ResourceSlice")

    assert reported is not None
    assert {gate: reported.get(gate, False) for gate in visible} == visible
    # Only DRADeviceTaints cannot be detected in 1.34.
    assert set(GATES) - set(visible) == ({"DRADeviceTaints"} if minor == "1.34" else set())
    assert left == []

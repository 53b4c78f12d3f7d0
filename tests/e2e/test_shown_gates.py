"""What a real API server shows of its gates to somebody who may not read its metrics, on and off."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from testbed import binaries
from testbed.kube import features
from testbed.kube.client import Kube
from tests.e2e.api_server import MINORS, Server, running

GATES = (
    "DRAExtendedResource", "DRAConsumableCapacity", "DRADeviceTaints", "DRAPartitionableDevices", "DRADeviceBindingConditions",
)  # fmt: skip


def _kube(server: Server) -> Kube:
    authority = str(server.folder / "certificates" / "apiserver.crt")
    cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": authority}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "of-a-test"}}],
    }
    file = server.folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return Kube(file)


@pytest.mark.parametrize("wanted", [True, False], ids=["on", "off"])
@pytest.mark.parametrize("minor", MINORS)
def test_the_api_shows_what_its_metrics_say(tmp_path: Path, minor: str, wanted: bool) -> None:
    known = binaries.lock_for(minor).gates
    asked = {gate: wanted for gate in GATES if not known[gate].locked}
    asked |= {name: False for name in known if not wanted and set(known[name].needs) & asked.keys()}
    with running(Server(tmp_path, minor, gates=asked)) as server:
        kube = _kube(server)
        said, shown = features.gates(kube), features.shown_gates(kube, features.version(kube), tries=True)
        left = kube.list("resource.k8s.io/v1", "ResourceClaim") + kube.list("resource.k8s.io/v1", "ResourceSlice")

    assert said is not None
    assert {gate: said.get(gate, False) for gate in shown} == shown
    # Only the tolerations of 1.34 say nothing.
    assert set(GATES) - set(shown) == ({"DRADeviceTaints"} if minor == "1.34" else set())
    assert left == []

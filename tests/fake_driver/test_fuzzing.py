"""Fuzzing: any input from people, kubelets, API servers and disks is either processed or refused.

A few examples of each are unit tests; `tox -e fuzz` tries 100,000.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fake_driver.errors import ConfigurationError, DriverError
from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import devices
from fake_driver.journal import Journal
from fake_driver.kubelet.armed_faults import ArmedFaults
from fake_driver.kubelet.dra_service import DraService
from fake_driver.preparing.checkpoint import VERSION, encode
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim
from testbed import folders
from testbed.kubelet.stubs import dra_v1_pb2
from tests.fake_driver.fake_node import NAME, Node, config
from tests.fake_driver.fuzzed_documents import TEXTS, with_random_changes

HARDWARE = [
    yaml.safe_load(path.read_text()) for path in sorted((folders.data("manifests") / "hardware").glob("*.yaml"))
]
UID = "5d1c7a80-0000-4000-8000-000000000001"
WELL = "5d1c7a80-0000-4000-8000-000000000002"
DEVICE = {
    "request": "gpu/big",
    "driver": NAME,
    "pool": "worker",
    "device": "gpu-2",
    "shareID": UID,
    "adminAccess": False,
}
CLAIM = {
    "metadata": {
        "uid": UID,
        "name": "any",
        "namespace": "default",
        "annotations": {"resource.kubernetes.io/pod-claim-name": "x"},
    },
    "status": {
        "allocation": {
            "devices": {
                "results": [{**DEVICE, "consumedCapacity": {"memory": "1Gi"}}, {**DEVICE, "device": "gpu-1"}],
                "config": [
                    config(
                        source="FromClass", env={"a": "b"}, sharing={"strategy": "TimeSlicing", "timeSlice": "Long"}
                    ),
                    config(requests=("gpu/big",), env={"c": "d"}),
                ],
            }
        }
    },
}
_KEPT = PreparedClaim(ClaimRef(UID, "default", "any"), (AllocatedDevice("gpu", "worker", "gpu-1"),), "x")
DATA = json.loads(json.loads(encode(_KEPT))["data"])
_FOLDERS = itertools.count()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return _node(tmp_path)


def _node(folder: Path) -> Node:
    return Node(folder / f"node-{next(_FOLDERS)}")


@given(with_random_changes(*HARDWARE))
def test_a_hardware_file_is_read_or_refused(document: Any) -> None:
    with contextlib.suppress(ConfigurationError):
        found = devices(hardware_file.parse(json.dumps(document), "x"), "worker")
        assert len({device.name for device in found}) == len(found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(claim=with_random_changes(CLAIM))
def test_a_claim_of_the_api_server_is_prepared_or_refused(node: Node, claim: Any) -> None:
    node.api["any"] = claim
    ref = ClaimRef(UID, "default", "any")
    with contextlib.suppress(DriverError):
        node.driver.prepare(ref)
    node.driver.unprepare(ref)
    _assert_works(node)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(claims=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=4))
def test_a_call_of_the_kubelet_is_answered(node: Node, tmp_path: Path, claims: list[tuple[str, str, str]]) -> None:
    journal = Journal(tmp_path / "asked.jsonl")
    service = DraService(node.driver, journal, dra_v1_pb2, ArmedFaults(journal))
    asked = [dra_v1_pb2.Claim(uid=uid, namespace=namespace, name=name) for uid, namespace, name in claims]
    context: Any = _Context()
    prepared = service.NodePrepareResources(dra_v1_pb2.NodePrepareResourcesRequest(claims=asked), context)
    released = service.NodeUnprepareResources(dra_v1_pb2.NodeUnprepareResourcesRequest(claims=asked), context)
    assert set(prepared.claims) == set(released.claims) == {uid for uid, _, _ in claims}
    for entry in [*prepared.claims.values(), *released.claims.values()]:
        assert "internal error" not in entry.error
    assert all(entry.error for entry in prepared.claims.values())
    _assert_works(node)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=with_random_changes(DATA), version=st.just(VERSION) | st.integers(), whole=st.binary(max_size=30) | st.none()
)
@example(data={}, version=VERSION, whole=b"")
def test_a_checkpoint_file_is_read_or_set_aside(node: Node, data: Any, version: int, whole: bytes | None) -> None:
    text = json.dumps(data)
    content = {"version": version, "checksum": hashlib.sha256(text.encode()).hexdigest(), "data": text}
    file = node.folder / "claims" / f"{UID}.json"
    file.write_bytes(json.dumps(content).encode() if whole is None else whole)
    node.start()
    node.driver.unprepare(ClaimRef(UID, "default", "any"))
    _assert_works(node)
    for damaged in file.parent.glob("*.damaged-*"):
        damaged.unlink()


class _Context:
    """A call without a deadline."""

    def time_remaining(self) -> None:
        return None

    def is_active(self) -> bool:
        return True


def _assert_works(node: Node) -> None:
    """Assert that a valid claim can be prepared and unprepared, and that no unexpected file exists."""
    ref = node.allocate("well", "gpu-0", uid=WELL)
    assert node.driver.prepare(ref)
    assert node.driver.unprepare(ref)
    known = {
        f"{folder}/{each.name}" for folder in ("cdi", "claims", "metadata") for each in (node.folder / folder).glob("*")
    }
    assert not {each for each in known if not each.startswith("claims/.") and ".damaged-" not in each}, known
    assert {each.name for each in node.folder.iterdir()} <= {"cdi", "claims", "metadata"}
    assert not [each for each in node.folder.parent.iterdir() if not each.name.startswith(("node-", "asked", "state"))]

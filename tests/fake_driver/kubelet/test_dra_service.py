"""The servicers over real sockets, called as the kubelet calls them."""

from __future__ import annotations

import fcntl
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from fake_driver.api.claim_client import ClaimClient
from fake_driver.preparing.cdi import CdiDevice, CdiFolder
from fake_driver.preparing.opaque_configuration import API_VERSION
from fake_driver.roles.node_driver import NodeProcess
from fake_driver.settings import Settings
from testbed.kubelet.stubs import dra_v1_pb2, dra_v1beta1_pb2, dra_v1beta1_pb2_grpc

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi


@pytest.fixture
def socket(start_driver: Callable[..., NodeProcess], settings: Settings) -> Path:
    """Start a driver and return its DRA socket."""
    start_driver(settings)
    return settings.data / "dra.sock"


def journal(settings: Settings) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (settings.data / "journal.jsonl").read_text().splitlines()]


def test_prepare_returns_the_fields_that_the_kubelet_needs(kubelet: Kubelet, socket: Path, fake_api: FakeApi) -> None:
    claim = fake_api.claim(devices=("gpu-1", "gpu-0"), request="gpu/fast")
    answer = kubelet.prepare(socket, claim)
    assert list(answer) == [claim["uid"]]
    devices = answer[claim["uid"]].devices
    assert [(list(one.request_names), one.pool_name, one.device_name) for one in devices] == [
        (["gpu"], "worker", "gpu-1"),
        (["gpu"], "worker", "gpu-0"),
    ]
    assert devices[0].cdi_device_ids == [f"gpu.dra-testbed.example/device={claim['uid']}.gpu.fast.gpu-1"]
    assert not devices[0].HasField("share_id")


def test_the_cdi_file_is_written_before_the_response(
    kubelet: Kubelet, socket: Path, fake_api: FakeApi, settings: Settings
) -> None:
    claim = fake_api.claim()
    (id_,) = kubelet.prepare(socket, claim)[claim["uid"]].devices[0].cdi_device_ids
    (file,) = Path(settings.cdi).glob("*.json")
    content = json.loads(file.read_text())
    assert id_ in [f"{content['kind']}={device['name']}" for device in content["devices"]]


def test_the_share_id_is_returned_in_v1_but_not_in_v1beta1(kubelet: Kubelet, socket: Path, fake_api: FakeApi) -> None:
    claim = fake_api.claim(shareID="11111111-1111-4111-8111-111111111111")
    assert kubelet.prepare(socket, claim)[claim["uid"]].devices[0].share_id == "11111111-1111-4111-8111-111111111111"
    beta = kubelet.dra(socket, dra_v1beta1_pb2_grpc)
    request = dra_v1beta1_pb2.NodePrepareResourcesRequest(claims=[dra_v1beta1_pb2.Claim(**claim)])
    (device,) = beta.NodePrepareResources(request, timeout=5).claims[claim["uid"]].devices
    assert device.device_name == "gpu-0"


def test_v1beta1_is_served(kubelet: Kubelet, socket: Path, fake_api: FakeApi) -> None:
    claim = fake_api.claim()
    kubelet.prepare(socket, claim)
    request = dra_v1beta1_pb2.NodeUnprepareResourcesRequest(claims=[dra_v1beta1_pb2.Claim(**claim)])
    answer = kubelet.dra(socket, dra_v1beta1_pb2_grpc).NodeUnprepareResources(request, timeout=5)
    assert answer.claims[claim["uid"]].error == ""


def test_an_invalid_claim_does_not_affect_other_claims_of_the_call(
    kubelet: Kubelet, socket: Path, fake_api: FakeApi
) -> None:
    good, busy = fake_api.claim("good"), fake_api.claim("busy")
    bad = [
        {"uid": "uid-a", "namespace": "default", "name": "missing"},
        {**fake_api.claim("replaced", ("gpu-2",)), "uid": "uid-b"},
        fake_api.claim("unallocated", ()),
        fake_api.claim("elsewhere", ("gpu-1",), pool="other"),
        {"uid": "../../x", "namespace": "default", "name": "good"},
        {"uid": "uid-c", "namespace": "../kube-system", "name": "good"},
        {"uid": "", "namespace": "", "name": ""},
    ]
    answer = kubelet.prepare(socket, bad[0], good, *bad[1:], busy)
    assert set(answer) == {claim["uid"] for claim in [good, busy, *bad]}
    assert answer[good["uid"]].error == ""
    assert [device.device_name for device in answer[good["uid"]].devices] == ["gpu-0"]
    texts = [
        "404",
        "was replaced",
        "is not allocated",
        "belongs to pool other",
        "UID '../../x'",
        "namespace '../kube-system'",
        "UID ''",
    ]
    for claim, text in zip(bad, texts, strict=True):
        assert text in answer[claim["uid"]].error
        assert not answer[claim["uid"]].devices
    assert "is still prepared for claim default/good" in answer[busy["uid"]].error


def test_a_malformed_claim_is_refused(kubelet: Kubelet, socket: Path, fake_api: FakeApi) -> None:
    bad = fake_api.claim("bad")
    fake_api.claims["default", "bad"]["status"]["allocation"]["devices"] = "garbage"
    assert "claim default/bad" in kubelet.prepare(socket, bad)[bad["uid"]].error
    assert "does not look like a ResourceClaim" in kubelet.prepare(socket, bad)[bad["uid"]].error


def test_an_internal_error_affects_only_its_claim(
    kubelet: Kubelet,
    socket: Path,
    fake_api: FakeApi,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good, bad = fake_api.claim("good"), fake_api.claim("bad", ("gpu-1",))
    right = CdiFolder.write

    def write(folder: CdiFolder, uid: str, devices: tuple[CdiDevice, ...]) -> None:
        if uid == bad["uid"]:
            raise RuntimeError("nobody thought of this")
        right(folder, uid, devices)

    monkeypatch.setattr(CdiFolder, "write", write)
    answer = kubelet.prepare(socket, bad, good)
    assert "internal error of the driver" in answer[bad["uid"]].error
    assert answer[good["uid"]].error == ""
    assert "Traceback" in caplog.text


def test_a_cancelled_call_prepares_nothing_after_its_unprepare(
    kubelet: Kubelet,
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    fake_api: FakeApi,
    wait_until: Callable[..., None],
) -> None:
    process, socket = start_driver(settings), settings.data / "dra.sock"
    claims = [fake_api.claim("one"), fake_api.claim("two", ("gpu-1",))]
    reading, go_on = threading.Event(), threading.Event()

    def slowly(_method: str, path: str) -> None:
        if path.endswith("/one"):
            reading.set()
            go_on.wait(5)

    fake_api.refuse = slowly
    request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[dra_v1_pb2.Claim(**claim) for claim in claims])
    call = kubelet.dra(socket).NodePrepareResources.future(request, timeout=45)
    assert reading.wait(5)
    call.cancel()
    assert not kubelet.unprepare(socket, claims[1])[claims[1]["uid"]].error
    go_on.set()
    wait_until(lambda: sum(each["event"] == "prepare" for each in journal(settings)) == 2)
    said = [each["error"] for each in journal(settings) if each["event"] == "prepare"]
    assert all(
        error.startswith("the call for claim default/") and "was cancelled or timed out" in error for error in said
    )
    assert process.driver.prepared == 0
    assert not list(Path(settings.cdi).glob("*"))
    other = fake_api.claim("other", ("gpu-1",))
    assert not kubelet.prepare(socket, other)[other["uid"]].error


def test_a_call_that_timed_out_while_waiting_for_a_lock_prepares_nothing(
    kubelet: Kubelet,
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    fake_api: FakeApi,
    wait_until: Callable[..., None],
) -> None:
    process, socket, claim = start_driver(settings), settings.data / "dra.sock", fake_api.claim()
    kubelet.prepare(socket)
    request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[dra_v1_pb2.Claim(**claim)])
    with (settings.data / "claims/.lock").open("rb") as other_process:
        fcntl.flock(other_process, fcntl.LOCK_EX)
        with pytest.raises(grpc.RpcError) as late:
            kubelet.dra(socket).NodePrepareResources(request, timeout=0.5)
        over = time.monotonic() + 0.3  # the driver's clock for the call began a little later than ours
        wait_until(lambda: time.monotonic() > over)
    assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until(lambda: any(each["event"] == "prepare" for each in journal(settings)))
    assert process.driver.prepared == 0
    assert not kubelet.prepare(socket, claim)[claim["uid"]].error


def test_the_timeout_for_the_api_server_is_computed_after_waiting_for_the_lock(
    kubelet: Kubelet,
    start_driver: Callable[..., NodeProcess],
    settings: Settings,
    fake_api: FakeApi,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []
    really = ClaimClient.get

    def get(access: ClaimClient, namespace: str, name: str, patience: float) -> Any:
        asked.append(patience)
        return really(access, namespace, name, patience)

    monkeypatch.setattr(ClaimClient, "get", get)
    process, claim = start_driver(settings), fake_api.claim()
    request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[dra_v1_pb2.Claim(**claim)])
    with process.driver._locks.hold(claim["uid"]):
        call = kubelet.dra(settings.data / "dra.sock").NodePrepareResources.future(request, timeout=3)
        with pytest.raises(grpc.FutureTimeoutError):
            call.result(1.3)  # not 1: the driver's clock for the call began a little later than ours
    assert not call.result(3).claims[claim["uid"]].error
    assert asked[0] < 2 * 0.8


def test_no_claims_give_an_empty_response_and_a_duplicate_claim_one_entry(
    kubelet: Kubelet, socket: Path, fake_api: FakeApi
) -> None:
    claim = fake_api.claim()
    assert not kubelet.prepare(socket)
    assert not kubelet.unprepare(socket)
    assert list(kubelet.prepare(socket, claim, claim)) == [claim["uid"]]


def test_unprepare_has_an_entry_for_unknown_claims(kubelet: Kubelet, socket: Path, fake_api: FakeApi) -> None:
    claim = fake_api.claim()
    kubelet.prepare(socket, claim)
    del fake_api.claims["default", "one"]
    fake_api.down = True
    answer = kubelet.unprepare(socket, claim, {"uid": "unknown", "namespace": "default", "name": "x"})
    assert {uid: entry.error for uid, entry in answer.items()} == {claim["uid"]: "", "unknown": ""}


def test_a_malformed_message_is_an_error_and_no_crash(kubelet: Kubelet, socket: Path, fake_api: FakeApi) -> None:
    method = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
    call = kubelet.channel(socket).unary_unary(method, lambda raw: raw, lambda raw: raw)
    with pytest.raises(grpc.RpcError):
        call(b"\xff\xff\xff", timeout=5)
    claim = fake_api.claim()
    assert not kubelet.prepare(socket, claim)[claim["uid"]].error


def test_claims_are_prepared_in_parallel(kubelet: Kubelet, socket: Path, fake_api: FakeApi) -> None:
    claims = [fake_api.claim(f"c{number}", (f"gpu-{number}",)) for number in range(4)]
    fake_api.gate.clear()
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(kubelet.prepare, socket, claim) for claim in claims]
        fake_api.gate.set()
        answers = [call.result(5) for call in calls]
    assert [next(iter(answer.values())).error for answer in answers] == [""] * 4


def test_the_api_server_is_not_awaited_beyond_the_callers_deadline(
    kubelet: Kubelet, socket: Path, fake_api: FakeApi
) -> None:
    claims = [fake_api.claim("one"), fake_api.claim("two", ("gpu-1",))]
    fake_api.gate.clear()
    request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[dra_v1_pb2.Claim(**claim) for claim in claims])
    answer = kubelet.dra(socket).NodePrepareResources(request, timeout=1)
    assert all("cannot be read: " in answer.claims[claim["uid"]].error for claim in claims)
    fake_api.gate.set()
    assert not kubelet.prepare(socket, claims[0])[claims[0]["uid"]].error


def test_a_cancelled_call_releases_its_lock(kubelet: Kubelet, socket: Path, fake_api: FakeApi) -> None:
    claim = fake_api.claim()
    fake_api.gate.clear()
    request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[dra_v1_pb2.Claim(**claim)])
    call = kubelet.dra(socket).NodePrepareResources.future(request, timeout=5)
    call.cancel()
    fake_api.gate.set()
    assert not kubelet.prepare(socket, claim)[claim["uid"]].error


def test_the_journal_records_each_call_with_its_result(
    kubelet: Kubelet, socket: Path, fake_api: FakeApi, settings: Settings
) -> None:
    claim = fake_api.claim()
    kubelet.prepare(socket, claim, {"uid": "x", "namespace": "default", "name": "missing"})
    kubelet.unprepare(socket, claim)
    good, bad, end = (note for note in journal(settings) if note["event"] in {"prepare", "unprepare"})
    assert (good["claim"], good["devices"]) == ("one", ["gpu-0"])
    assert "404" in bad["error"]
    assert end["was_prepared"] is True
    assert all(note["seconds"] >= 0 for note in (good, bad, end))


def test_a_restart_while_a_claim_is_prepared_loses_nothing(
    kubelet: Kubelet, start_driver: Callable[..., NodeProcess], settings: Settings, fake_api: FakeApi
) -> None:
    first, claim = start_driver(settings), fake_api.claim()
    before = kubelet.prepare(settings.data / "dra.sock", claim)
    first.stop()
    second = replace(settings, pod_uid="22222222-2222-4222-8222-222222222222")
    start_driver(second)
    socket = settings.data / f"dra-{second.pod_uid}.sock"
    assert kubelet.prepare(socket, claim) == before
    assert not kubelet.unprepare(socket, claim)[claim["uid"]].error
    assert list(Path(settings.cdi).iterdir()) == []


def test_a_running_prepare_finishes_when_the_driver_stops(
    kubelet: Kubelet, start_driver: Callable[..., NodeProcess], settings: Settings, fake_api: FakeApi
) -> None:
    process, claim = start_driver(settings), fake_api.claim()
    asked = threading.Event()
    fake_api.refuse = lambda _method, path: asked.set() if "resourceclaims" in path else None
    fake_api.wait_until(lambda: bool(fake_api.slices))
    fake_api.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(kubelet.prepare, settings.data / "dra.sock", claim)
        threading.Timer(0.1, fake_api.gate.set).start()
        assert asked.wait(5)
        process.stop()
        assert not call.result(5)[claim["uid"]].error
    assert list(settings.data.glob("*.sock")) == []


def test_the_status_of_the_claim_reports_its_devices(
    kubelet: Kubelet, socket: Path, fake_api: FakeApi, settings: Settings
) -> None:
    claim = fake_api.claim(devices=("gpu-1",))
    kubelet.prepare(socket, claim)
    fake_api.wait_until(lambda: bool(fake_api.status()))
    (entry,) = fake_api.status()
    assert (entry["driver"], entry["pool"], entry["device"]) == (settings.driver, "worker", "gpu-1")
    assert entry["data"]["model"] == "F100"
    ((manager, _),) = fake_api.applied
    assert manager == f"{settings.driver}-worker"


def test_a_refused_status_does_not_delay_prepare(kubelet: Kubelet, socket: Path, fake_api: FakeApi) -> None:
    fake_api.refuse = lambda method, _path: (500, "not now") if method == "PATCH" else None
    claim = fake_api.claim()
    assert not kubelet.prepare(socket, claim)[claim["uid"]].error
    assert not kubelet.unprepare(socket, claim)[claim["uid"]].error


def test_a_status_that_was_not_written_before_a_restart_is_written_after_it(
    kubelet: Kubelet, start_driver: Callable[..., NodeProcess], settings: Settings, fake_api: FakeApi
) -> None:
    fake_api.refuse = lambda method, _path: (500, "not now") if method == "PATCH" else None
    first = start_driver(settings)
    kubelet.prepare(settings.data / "dra.sock", fake_api.claim())
    first.stop()
    fake_api.refuse = lambda _method, _path: None
    start_driver(settings)
    fake_api.wait_until(lambda: bool(fake_api.status()))


def test_invalid_configuration_affects_only_its_claim(
    kubelet: Kubelet, socket: Path, fake_api: FakeApi, settings: Settings
) -> None:
    parameters = {"apiVersion": API_VERSION, "kind": "GpuConfig", "sharing": {"strategy": "Both"}}
    config = {"source": "FromClaim", "opaque": {"driver": settings.driver, "parameters": parameters}}
    bad, good = fake_api.claim("bad", config=(config,)), fake_api.claim("good", ("gpu-1",))
    answer = kubelet.prepare(socket, bad, good)
    assert (
        "config[0].opaque.parameters.sharing.strategy is 'Both'; known: SpacePartitioning, TimeSlicing"
        in answer[bad["uid"]].error
    )
    assert answer[good["uid"]].error == ""

"""Control of a running driver end to end: from the command line to the slices and the responses to the kubelet."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from fake_driver.control import __main__ as control
from fake_driver.control.control_socket import MAX_REQUEST
from fake_driver.roles.node_driver import NodeProcess
from fake_driver.settings import Settings
from testbed.kubelet.stubs import dra_health_v1_pb2, dra_health_v1_pb2_grpc, dra_v1_pb2

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi

Start = Callable[..., NodeProcess]


class Client:
    """Runs `fake_driver.control` as in the driver's pod."""

    def __init__(self, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.path = settings.data / "control.sock"
        self._environment = {"FAKE_DRIVER_PLUGINS": settings.plugins, "FAKE_DRIVER_REGISTRY": settings.registry}

    def __call__(self, *words: str) -> Any:
        self._capsys.readouterr()
        assert control.main(words, self._environment) == 0, self._capsys.readouterr().err
        return json.loads(self._capsys.readouterr().out)

    def refused(self, *words: str) -> str:
        self._capsys.readouterr()
        assert control.main(words, self._environment) == 2
        return self._capsys.readouterr().err

    def raw(self, line: bytes) -> Any:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.path))
            connection.sendall(line)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as answer:
                return json.loads(answer.readline())


@pytest.fixture
def client(settings: Settings, capsys: pytest.CaptureFixture[str]) -> Client:
    return Client(settings, capsys)


def published(fake_api: FakeApi) -> dict[str, Any]:
    return {device["name"]: device for each in fake_api.slices.values() for device in each["spec"]["devices"]}


def test_unplugging_a_device_is_one_write_and_survives_a_restart(
    start_driver: Start, settings: Settings, fake_api: FakeApi, client: Client
) -> None:
    process = start_driver(settings)
    fake_api.wait_until(lambda: len(published(fake_api)) == 4)
    writes = len(fake_api.writes)
    assert client("unplug", "gpu-1") == {"changed": True}
    fake_api.wait_until(lambda: list(published(fake_api)) == ["gpu-0", "gpu-2", "gpu-3"])
    assert len(fake_api.writes) == writes + 1
    assert client("unplug", "gpu-1") == {"changed": False}
    process.stop()
    start_driver(settings)
    assert client("state")["changes"] == {"gpu-1": {"absent": True}}
    client("plug", "gpu-1")
    fake_api.wait_until(lambda: len(published(fake_api)) == 4)


def test_attributes_and_taints_are_published_and_can_be_undone(
    start_driver: Start, settings: Settings, fake_api: FakeApi, client: Client
) -> None:
    start_driver(settings)
    client("set", "gpu-0", "model=F900", "--capacity", "memory=40Gi")
    client("set", "gpu-0", "firmware={version: 2.0.1}", "--new")
    client("taint", "gpu-0", "example.com/broken=ecc:NoExecute")
    fake_api.wait_until(lambda: "taints" in published(fake_api).get("gpu-0", {}))
    device = published(fake_api)["gpu-0"]
    assert device["attributes"]["model"] == {"string": "F900"}
    assert device["attributes"]["firmware"] == {"version": "2.0.1"}
    assert device["capacity"]["memory"] == {"value": "40Gi"}
    assert device["taints"] == [{"key": "example.com/broken", "value": "ecc", "effect": "NoExecute"}]
    client("untaint", "gpu-0", "example.com/broken")
    fake_api.wait_until(lambda: "taints" not in published(fake_api)["gpu-0"])
    client("restore")
    fake_api.wait_until(lambda: published(fake_api)["gpu-0"]["attributes"]["model"] == {"string": "F100"})
    assert client("state")["changes"] == {}


def test_a_claim_for_an_unplugged_device_is_refused_and_one_that_is_prepared_can_be_unprepared(
    start_driver: Start, settings: Settings, fake_api: FakeApi, kubelet: Kubelet, client: Client
) -> None:
    start_driver(settings)
    dra = settings.data / "dra.sock"
    before, after = fake_api.claim("one"), fake_api.claim("two", devices=("gpu-1",))
    assert not kubelet.prepare(dra, before)[before["uid"]].error
    client("unplug", "gpu-0")
    client("unplug", "gpu-1")
    assert "is not in pool worker" in kubelet.prepare(dra, after)[after["uid"]].error
    assert not kubelet.unprepare(dra, before)[before["uid"]].error


def test_a_change_of_health_reaches_the_stream_until_the_device_is_unplugged(
    start_driver: Start, settings: Settings, kubelet: Kubelet, client: Client
) -> None:
    start_driver(settings)
    stub = dra_health_v1_pb2_grpc.DRAResourceHealthStub(kubelet.channel(settings.data / "dra.sock"))
    stream = stub.NodeWatchResources(dra_health_v1_pb2.NodeWatchResourcesRequest(), timeout=10)

    def next_health() -> dict[str, tuple[int, str]]:
        return {each.device.device_name: (each.health, each.message) for each in next(stream).devices}

    assert next_health()["gpu-2"] == (1, "")
    client("health", "gpu-2", "unhealthy", "--message", "ECC errors")
    while (now := next_health())["gpu-2"] == (1, ""):
        pass
    assert now["gpu-2"] == (2, "ECC errors")
    client("unplug", "gpu-2")
    while "gpu-2" in (now := next_health()):
        pass
    assert len(now) == 3
    stream.cancel()


def test_three_calls_fail_and_the_fourth_succeeds(
    start_driver: Start, settings: Settings, fake_api: FakeApi, kubelet: Kubelet, client: Client
) -> None:
    start_driver(settings)
    dra, claim = settings.data / "dra.sock", fake_api.claim()
    client("fault", "prepare", "--times", "3", "--code", "unavailable", "--message", "bus error")
    for _ in range(3):
        with pytest.raises(grpc.RpcError) as failed:
            kubelet.prepare(dra, claim)
        assert (failed.value.code(), failed.value.details()) == (grpc.StatusCode.UNAVAILABLE, "bus error")
    assert [each.device_name for each in kubelet.prepare(dra, claim)[claim["uid"]].devices] == ["gpu-0"]
    assert client("state")["faults"] == []


@pytest.mark.parametrize("narrow", [["--claim", "default/two"], ["--device", "gpu-1"]])
def test_a_fault_for_one_claim_or_device_does_not_affect_others(
    start_driver: Start, settings: Settings, fake_api: FakeApi, kubelet: Kubelet, client: Client, narrow: list[str]
) -> None:
    start_driver(settings)
    dra, one, two = settings.data / "dra.sock", fake_api.claim("one"), fake_api.claim("two", devices=("gpu-1",))
    client("fault", "prepare", "--times", "0", *narrow)
    answers = kubelet.prepare(dra, one, two)
    assert (answers[one["uid"]].error, answers[two["uid"]].error) == ("", "fault prepare")
    assert client("clear") == {"changed": True, "cleared": 1}
    assert not kubelet.prepare(dra, two)[two["uid"]].error
    client("fault", "unprepare", *narrow)
    assert kubelet.unprepare(dra, two)[two["uid"]].error == "fault unprepare"
    assert not kubelet.unprepare(dra, two)[two["uid"]].error


def test_a_fault_does_not_outlive_the_process_and_a_lost_cdi_folder_is_recreated(
    start_driver: Start, settings: Settings, fake_api: FakeApi, kubelet: Kubelet, client: Client
) -> None:
    process = start_driver(settings)
    dra, claim = settings.data / "dra.sock", fake_api.claim()
    kubelet.prepare(dra, claim)
    assert client("lose-cdi") == {"changed": True, "lost": 1}
    assert not list(Path(settings.cdi).glob("*.json"))
    client("fault", "prepare", "--times", "0")
    client("crash", "after-cdi")
    assert client("state")["crash"] == ["after-cdi"]
    process.stop()
    start_driver(settings)
    assert {**client("state"), "journal": 0}["faults"] == []
    assert not kubelet.prepare(dra, claim)[claim["uid"]].error
    assert len(list(Path(settings.cdi).glob("*.json"))) == 1


def test_a_stale_claim_is_released(
    start_driver: Start, settings: Settings, fake_api: FakeApi, kubelet: Kubelet, client: Client
) -> None:
    start_driver(settings)
    dra, claim, other = settings.data / "dra.sock", fake_api.claim(), fake_api.claim("two")
    kubelet.prepare(dra, claim)
    assert "nothing was changed: claim default/one" in client.refused("release", claim["uid"])
    fake_api.remove_claim("one")
    assert f"hardware release {claim['uid']}`" in kubelet.prepare(dra, other)[other["uid"]].error
    assert client("release", claim["uid"]) == {"changed": True}
    assert not kubelet.prepare(dra, other)[other["uid"]].error
    assert client("release", claim["uid"]) == {"changed": False}
    assert client("release", other["uid"], "--force") == {"changed": True}
    recorded = [each for each in client("journal")["entries"] if each["event"] == "control"]
    assert [(each["verb"], each["claim"]) for each in recorded] == [
        ("release", claim["uid"]),
        ("release", other["uid"]),
    ]


def test_the_journal_has_calls_writes_changes_and_faults_in_order(
    start_driver: Start, settings: Settings, fake_api: FakeApi, kubelet: Kubelet, client: Client
) -> None:
    # The API has the slice a moment before the driver records the write.
    assert start_driver(settings)._publisher.published.wait(5)
    dra, claim = settings.data / "dra.sock", fake_api.claim()
    since = client("state")["journal"]
    client("fault", "prepare")
    kubelet.prepare(dra, claim)
    kubelet.prepare(dra, claim)
    found = client("journal", "--since", str(since))
    events = [each["event"] for each in found["entries"] if each["event"] != "status-write"]
    assert events == ["control", "fault", "prepare", "cdi-write", "prepare"]
    numbers = [each["seq"] for each in found["entries"]]
    assert numbers == list(range(since + 1, found["last"] + 1))
    assert len(client("journal", "--since", str(since), "--limit", "2")["entries"]) == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("unplug", "gpu-9"), "has no device 'gpu-9'; did you mean gpu-"),
        (("set", "gpu-0", "modle=x"), "did you mean model?"),
        (("set", "gpu-0", "model={float: 1.5}"), "attributes.model must be {version: x.y.z}"),
        (("set", "gpu-0", "model=" + "x" * 65), "1 to 64 bytes"),
        (("set", "gpu-0", "--capacity", "memory=lots"), "must be a quantity"),
        (("set", "gpu-0"), "must contain attributes or capacity"),
        (("set", "gpu-0", *(f"a{i}=1" for i in range(40)), "--new"), "attributes and capacities, but may have 32"),
        (("taint", "gpu-0", "k:NoSchedul"), "must be one of NoSchedule, NoExecute, None"),
        (("taint", "gpu-0", "a b:NoSchedule"), "must be a label key"),
        (("untaint", "gpu-0", "broken"), "is not the key of a taint of gpu-0; it has none"),
        (("health", "gpu-0", "unhealth"), "did you mean unhealthy"),
        (("fault", "prepar"), "did you mean prepare"),
        (("fault", "prepare", "--code", "UNAVAILABL"), "did you mean UNAVAILABLE"),
        (("fault", "prepare", "--times", "-1"), "must be 0 (until it is cleared)"),
        (("fault", "prepare", "--device", "gpu-8"), "has no device 'gpu-8'"),
        (("crash", "after-cdy"), "did you mean after-cdi"),
        (("release", "../x"), "must be the UID of a claim"),
        (("journal", "--limit", "0"), "must be 1 to 1000"),
    ],
)
def test_an_invalid_request_is_explained_and_changes_nothing(
    start_driver: Start, settings: Settings, client: Client, words: tuple[str, ...], expected: str
) -> None:
    start_driver(settings)
    assert expected in client.refused(*words)
    state = client("state")
    assert (state["changes"], state["faults"], state["crash"]) == ({}, [], [])
    assert not (settings.data / "hardware-changes.json").exists()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"\n", "is not JSON"),
        (b"\xff\xfe\n", "is not JSON"),
        (b"[" * 5000 + b"\n", "is not JSON"),
        (b'"' + b"x" * MAX_REQUEST + b'"\n', f"is longer than {MAX_REQUEST} bytes"),
        (b"[]\n", "must be a mapping"),
        (b'{"verb": "plugg", "device": "gpu-0"}\n', "did you mean plug or unplug"),
        (b'{"verb": "plug", "device": 7}\n', "device is an integer, but must be a string"),
        (b'{"verb": "plug", "device": "gpu-0", "devise": 1}\n', "devise is unknown; did you mean device"),
        (b'{"verb": "fault", "call": "prepare", "delay": NaN}\n', "must be 0 to 3600 seconds"),
        (b'{"verb": "health", "device": "gpu-0", "status": "unhealthy", "message": "a\\nb"}\n', "must be printable"),
        (b'{"verb": "fault", "call": "prepare", "message": "a\\nb"}\n', "must be printable"),
        (b'{"verb": "restore", "devices": []}\n', "devices is unknown"),
    ],
)
def test_a_malformed_request_gets_an_error(
    start_driver: Start, settings: Settings, client: Client, line: bytes, expected: str
) -> None:
    start_driver(settings)
    answer = client.raw(line)
    assert answer["ok"] is False
    assert expected in answer["error"]


def test_the_socket_is_private_named_after_the_pod_and_removed_at_the_end(
    start_driver: Start, settings: Settings, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    process = start_driver(settings)
    assert client.path.stat().st_mode & 0o777 == 0o600
    uid = "8d4d8a0e-0b3c-4c56-9b1c-0d7f8f3f1a11"
    start_driver(replace(settings, pod_uid=uid))
    environment = {"FAKE_DRIVER_PLUGINS": settings.plugins, "POD_UID": uid}
    assert control.main(["state"], environment) == 0
    process.stop()
    assert not client.path.exists()
    assert control.main(["state"], {"FAKE_DRIVER_PLUGINS": settings.plugins}) == 3
    assert "no driver answers" in capsys.readouterr().err


def test_a_hanging_call_ends_when_faults_are_cleared(
    start_driver: Start,
    settings: Settings,
    fake_api: FakeApi,
    kubelet: Kubelet,
    client: Client,
    wait_until: Callable[[Callable[[], bool]], None],
) -> None:
    start_driver(settings)
    dra, claim = kubelet.dra(settings.data / "dra.sock"), fake_api.claim()
    client("fault", "prepare", "--hang")
    request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[dra_v1_pb2.Claim(**claim)])
    call = dra.NodePrepareResources.future(request, timeout=30)
    wait_until(lambda: any(each["event"] == "fault" for each in client("journal")["entries"]))
    assert not call.done()
    client("clear")
    assert call.exception(timeout=5).code() is grpc.StatusCode.DEADLINE_EXCEEDED
    client("fault", "prepare", "--hang")
    with pytest.raises(grpc.RpcError):
        dra.NodePrepareResources(request, timeout=0.05)  # the connection gives up, and the driver notices


def test_in_a_large_pool_a_change_of_one_device_is_one_write_except_for_the_first_taint_in_a_slice(
    start_driver: Start, settings: Settings, client: Client, fake_api: FakeApi
) -> None:
    many = Path(settings.hardware).read_text().replace("count: 4", "count: 300")
    Path(settings.hardware).write_text(many)
    process = start_driver(settings)
    assert process._publisher.published.wait(5)
    fake_api.writes.clear()

    def is_whole() -> bool:
        pools = [each["spec"]["pool"] for each in fake_api.slices.values()]
        return all(each == {**pools[0], "resourceSliceCount": len(pools)} for each in pools)

    def writes(*words: str) -> list[str]:
        before, names = len(fake_api.writes), published(fake_api)
        client(*words)
        fake_api.wait_until(lambda: published(fake_api) != names)
        fake_api.wait_until(is_whole)
        return [f"{verb} {name[:5]}" for verb, name in map(str.split, fake_api.writes[before:])]

    assert writes("unplug", "gpu-0") == ["PUT 00000"]
    assert writes("plug", "gpu-0") == ["PUT 00000"]
    assert writes("taint", "gpu-200", "a:None") == ["PUT 00000", "PUT 00002", "PUT 00004", "POST 00003"]
    assert writes("untaint", "gpu-200", "a") == ["PUT 00003"]
    assert writes("taint", "gpu-130", "a:None") == ["PUT 00002"]
    assert writes("untaint", "gpu-130", "a") == ["PUT 00002"]
    process.stop()
    assert start_driver(settings)._publisher.published.wait(5)
    assert len(fake_api.writes) == 9

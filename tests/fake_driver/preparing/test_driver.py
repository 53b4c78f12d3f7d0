import errno
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fake_driver.devices.model import Device, Pool
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.preparing.accepted_claims import rules
from fake_driver.preparing.cdi import CdiFolder
from fake_driver.preparing.claims import ClaimRef, Object
from fake_driver.preparing.inventory import Inventory
from tests.fake_driver.fake_node import EDITS, INVENTORY, NAME, Node, config, names


def test_a_claim_gets_its_devices_and_their_cdi_ids(node: Node) -> None:
    ref = node.allocate("one", "gpu-0", "gpu-2")
    prepared = node.driver.prepare(ref)
    assert names(prepared) == ["gpu-0", "gpu-2"]
    assert [one.cdi_ids for one in prepared] == [
        ("gpu.example/device=uid-one.gpu.gpu-0",),
        ("gpu.example/device=uid-one.gpu.gpu-2",),
    ]
    assert {"GPU_DEVICE_GPU_0_UUID=u-0", "GPU_DEVICE_GPU_2_UUID=u-2"} <= set(node.env(ref))


def test_container_edits_of_the_hardware_file_are_in_the_cdi_file(node: Node) -> None:
    ref = node.allocate("one", "gpu-2")
    node.driver.prepare(ref)
    content = json.loads((node.folder / f"cdi/{NAME}-{ref.uid}.json").read_text())
    assert content["devices"][0]["containerEdits"]["deviceNodes"] == EDITS["deviceNodes"]


def test_the_first_device_of_a_request_mounts_its_metadata_until_unprepare(node: Node) -> None:
    ref = node.allocate("one", "gpu-0", "gpu-1")
    node.driver.prepare(ref)
    first, second = node.edits(ref)
    (mount,) = first["mounts"]
    assert "mounts" not in second
    assert json.loads(Path(mount["hostPath"]).read_text().partition("\n}\n")[0] + "}")["metadata"]["uid"] == ref.uid
    node.driver.unprepare(ref)
    assert not Path(mount["hostPath"]).parent.exists()


def test_a_driver_that_starts_removes_orphaned_metadata(node: Node) -> None:
    kept, orphaned = node.allocate("kept", "gpu-0"), node.allocate("lost", "gpu-1")
    node.driver.prepare(kept)
    node.driver.prepare(orphaned)
    (node.folder / f"claims/{orphaned.uid}.json").unlink()
    (node.folder / f"cdi/{NAME}-{orphaned.uid}.json").unlink()
    node.start()
    assert [path.name for path in (node.folder / "metadata").iterdir()] == [kept.uid]


def test_a_repeated_prepare_has_the_same_answer_and_writes_the_cdi_file_again(node: Node) -> None:
    ref = node.allocate("one", "gpu-0")
    first = node.driver.prepare(ref)
    (node.folder / f"cdi/{NAME}-{ref.uid}.json").unlink()
    (node.folder / "cdi").rmdir()
    node.start()
    assert node.driver.prepare(ref) == first
    assert node.files() == ["gpu.example-uid-one.json"]


def test_unprepare_needs_no_api_server_and_frees_the_device(node: Node) -> None:
    ref = node.allocate("one", "gpu-0")
    node.driver.prepare(ref)
    node.start()
    node.error = ApiError("GET claim", 0, "connection refused")
    assert node.driver.unprepare(ClaimRef(ref.uid))
    assert node.files() == []
    node.error = None
    assert names(node.driver.prepare(node.allocate("two", "gpu-0"))) == ["gpu-0"]


@pytest.mark.parametrize("uid", ["never-seen", "../../etc/passwd", ""])
def test_unprepare_of_an_unknown_claim_is_fine(node: Node, uid: str) -> None:
    assert node.driver.unprepare(ClaimRef(uid)) is False


def test_a_device_that_another_claim_has_is_refused_until_that_one_is_unprepared(node: Node) -> None:
    first, second = node.allocate("one", "gpu-0"), node.allocate("two", "gpu-0")
    node.driver.prepare(first)
    with pytest.raises(ClaimRefused, match=r"gpu-0 is still prepared for claim default/one \(uid-one\)"):
        node.driver.prepare(second)
    assert node.files() == ["gpu.example-uid-one.json"]
    node.driver.unprepare(first)
    assert names(node.driver.prepare(second)) == ["gpu-0"]


def test_admin_access_conflicts_with_no_other_claim(node: Node) -> None:
    monitors = [node.allocate(name, "gpu-0", adminAccess=True) for name in ("early", "late")]
    node.driver.prepare(monitors[0])
    user = node.allocate("one", "gpu-0")
    node.driver.prepare(user)
    node.driver.prepare(monitors[1])
    assert all("GPU_DEVICE_GPU_0_ADMIN_ACCESS=true" in node.env(monitor) for monitor in monitors)
    assert not any("ADMIN_ACCESS" in variable for variable in node.env(user))
    node.driver.unprepare(monitors[0])
    with pytest.raises(ClaimRefused, match=r"still prepared for claim default/one"):
        node.driver.prepare(node.allocate("two", "gpu-0"))


@pytest.mark.parametrize("lost", ["nothing", "checkpoint"])
def test_admin_access_is_kept_in_the_checkpoint(node: Node, lost: str) -> None:
    monitor = node.allocate("monitor", "gpu-0", adminAccess=True)
    node.driver.prepare(monitor)
    if lost == "checkpoint":
        (node.folder / f"claims/{monitor.uid}.json").unlink()
    node.start()
    assert names(node.driver.prepare(node.allocate("one", "gpu-0"))) == ["gpu-0"]


def test_configuration_is_applied_from_the_checkpoint_while_the_api_server_is_unavailable(node: Node) -> None:
    sharing = {"strategy": "TimeSlicing", "interval": "Long"}
    ref = node.allocate("one", "gpu-0", config=[config(env={"a": "b"}, sharing=sharing)])
    first = node.driver.prepare(ref)
    env = node.env(ref)
    assert {
        "user_a=b",
        "GPU_DEVICE_GPU_0_SHARING_STRATEGY=TimeSlicing",
        "GPU_DEVICE_GPU_0_SHARING_INTERVAL=Long",
    } <= set(env)
    node.start()
    node.error = ApiError("GET claim", 0, "away")
    assert node.driver.prepare(ref) == first
    assert node.env(ref) == env


def test_a_claim_with_invalid_configuration_leaves_no_files(node: Node) -> None:
    ref = node.allocate("one", "gpu-0", config=[config(env={"a": 1})])
    with pytest.raises(ClaimRefused, match=r"config\[0\].opaque.parameters.env.a must be a printable text"):
        node.driver.prepare(ref)
    assert node.files() == []


def test_a_claim_rebuilt_from_a_cdi_file_is_not_prepared_without_the_api_server(node: Node) -> None:
    ref = node.allocate("one", "gpu-0", config=[config(env={"a": "b"})])
    node.driver.prepare(ref)
    (node.folder / f"claims/{ref.uid}.json").unlink()
    node.start()
    node.error = ApiError("GET claim", 0, "away")
    with pytest.raises(ClaimRefused, match="cannot be read"):
        node.driver.prepare(ref)
    node.error = None
    node.driver.prepare(ref)
    assert "user_a=b" in node.env(ref)


def test_status_updates_follow_prepare_and_unprepare_and_are_repeated_after_a_restart(node: Node) -> None:
    ref = node.allocate("one", "gpu-0")
    node.driver.prepare(ref)
    node.start()
    node.driver.unprepare(ref)
    assert node.status_updates == [
        ("prepared", "uid-one", True),
        ("prepared", "uid-one", False),
        ("released", "uid-one", False),
    ]


def test_a_claim_that_was_replaced_is_refused_and_the_old_one_stays(node: Node) -> None:
    old = node.allocate("one", "gpu-0", uid="old")
    node.driver.prepare(old)
    node.allocate("one", "gpu-1", uid="new")
    with pytest.raises(ClaimRefused, match="was replaced"):
        node.driver.prepare(old)
    assert node.files() == ["gpu.example-old.json"]


def test_a_claim_that_was_reallocated_frees_its_first_devices(node: Node) -> None:
    node.driver.prepare(node.allocate("one", "gpu-0"))
    node.driver.prepare(node.allocate("one", "gpu-1"))
    assert names(node.driver.prepare(node.allocate("two", "gpu-0"))) == ["gpu-0"]


def test_nothing_is_prepared_for_a_claim_without_devices_of_this_driver(node: Node) -> None:
    assert node.driver.prepare(node.allocate("one")) == ()
    assert node.files() == []


@pytest.mark.parametrize(("device", "text"), [("gpu-9", "not in pool worker"), ("a/b", "malformed")])
def test_a_claim_for_a_device_of_another_node_leaves_no_files(node: Node, device: str, text: str) -> None:
    with pytest.raises(ClaimRefused, match=text):
        node.driver.prepare(node.allocate("one", "gpu-0", device))
    assert node.files() == []
    assert names(node.driver.prepare(node.allocate("two", "gpu-0"))) == ["gpu-0"]


@pytest.mark.parametrize("status", [0, 429, 500, 503])
def test_a_prepared_claim_is_prepared_again_while_the_api_server_is_unavailable(node: Node, status: int) -> None:
    ref = node.allocate("one", "gpu-0")
    first = node.driver.prepare(ref)
    node.error = ApiError("GET claim", status, "away")
    assert node.driver.prepare(ref) == first
    with pytest.raises(ClaimRefused, match=r"uid-two\) cannot be read: .*away"):
        node.driver.prepare(node.allocate("two", "gpu-1"))


def test_a_deleted_claim_is_not_prepared_from_the_checkpoint(node: Node) -> None:
    ref = node.allocate("one", "gpu-0")
    node.driver.prepare(ref)
    del node.api["one"]
    with pytest.raises(ClaimRefused, match="404"):
        node.driver.prepare(ref)


def test_a_claim_refused_by_a_full_disk_leaves_no_files(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    ref = node.allocate("one", "gpu-0")
    with monkeypatch.context() as patched:
        patched.setattr(CdiFolder, "write", full)
        with pytest.raises(OSError, match="No space left"):
            node.driver.prepare(ref)
    assert names(node.driver.prepare(node.allocate("two", "gpu-0"))) == ["gpu-0"]


def test_a_claim_that_a_newer_version_prepared_is_left_alone_until_it_is_unprepared(node: Node) -> None:
    first, second = node.allocate("one", "gpu-0"), node.allocate("two", "gpu-0")
    node.driver.prepare(first)
    file, cdi = node.folder / f"claims/{first.uid}.json", node.folder / f"cdi/{NAME}-{first.uid}.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 2}))
    before = file.read_bytes(), cdi.read_bytes(), list((node.folder / "metadata").rglob("*.json"))
    node.status_updates.clear()
    node.start()
    with pytest.raises(ClaimRefused, match="was prepared by a newer version of this driver"):
        node.driver.prepare(first)
    with pytest.raises(ClaimRefused, match=r"gpu-0 is still prepared for claim default/one"):
        node.driver.prepare(second)
    node.error = ApiError("GET claim", 0, "away")
    with pytest.raises(ClaimRefused, match="was prepared by a newer version of this driver"):
        node.driver.prepare(first)
    node.error = None
    assert (file.read_bytes(), cdi.read_bytes(), list((node.folder / "metadata").rglob("*.json"))) == before
    assert node.status_updates == []
    assert node.driver.unprepare(first)
    assert [*node.files(), *(node.folder / "claims").glob("*.json"), *(node.folder / "metadata").iterdir()] == []
    assert names(node.driver.prepare(second)) == ["gpu-0"]


@pytest.mark.parametrize("failing", ["sync_file", "sync_folder"])
def test_a_claim_that_cannot_be_synced_does_not_hold_its_device_after_a_restart(
    node: Node, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def broken(_path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    first, second = node.allocate("one", "gpu-0"), node.allocate("two", "gpu-0")
    with monkeypatch.context() as patched:
        patched.setattr(f"fake_driver.preparing.checkpoint.{failing}", broken)
        with pytest.raises(OSError, match="Input/output error"):
            node.driver.prepare(first)
    assert [*node.files(), *(node.folder / "metadata").iterdir()] == []
    assert names(node.driver.prepare(second)) == ["gpu-0"]
    node.start()
    assert names(node.driver.prepare(second)) == ["gpu-0"]


def test_a_claim_that_was_prepared_before_a_disk_error_stays_prepared(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    node.driver.prepare(node.allocate("one", "gpu-0"))
    with monkeypatch.context() as patched:
        patched.setattr("fake_driver.preparing.checkpoint.sync_folder", broken)
        with pytest.raises(OSError, match="Input/output error"):
            node.driver.prepare(node.allocate("one", "gpu-1"))
    assert node.files() == ["gpu.example-uid-one.json"]
    assert (node.folder / "claims/uid-one.json").exists()


def test_a_claim_whose_device_is_unplugged_during_prepare_leaves_no_files(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = node.allocate("one", "gpu-0")
    with monkeypatch.context() as patched:
        unplug = {"after-checkpoint": lambda: patched.setattr(INVENTORY, "_pools", {"worker": {}})}
        patched.setattr(node, "at_crash_point", lambda point: unplug.get(point, lambda: None)())
        node.start()
        with pytest.raises(ClaimRefused, match="gpu-0 is not in pool worker"):
            node.driver.prepare(ref)
    node.start()
    assert [*(node.folder / "claims").glob("*.json"), *(node.folder / "metadata").glob("*"), *node.files()] == []
    assert names(node.driver.prepare(node.allocate("two", "gpu-0"))) == ["gpu-0"]


def test_a_device_stays_held_after_its_checkpoint_was_lost(node: Node) -> None:
    ref = node.allocate("one", "gpu-0")
    node.driver.prepare(ref)
    (node.folder / f"claims/{ref.uid}.json").unlink()
    node.start()
    with pytest.raises(ClaimRefused, match="still prepared for claim uid-one"):
        node.driver.prepare(node.allocate("two", "gpu-0"))
    assert node.driver.unprepare(ref)
    assert names(node.driver.prepare(node.allocate("two", "gpu-0"))) == ["gpu-0"]


def test_many_claims_at_once_and_one_claim_many_times(node: Node) -> None:
    refs = [node.allocate(f"c{number}", f"gpu-{number % 3}") for number in range(12)]

    def attempt(ref: ClaimRef) -> str:
        try:
            return names(node.driver.prepare(ref))[0]
        except ClaimRefused:
            return "refused"

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(attempt, refs * 3))
    assert sorted(set(answers)) == ["gpu-0", "gpu-1", "gpu-2", "refused"]
    assert len(node.files()) == 3
    assert answers[:12] == answers[12:24] == answers[24:]


def test_unprepare_waits_for_a_running_prepare_of_the_same_claim(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, go_on = threading.Event(), threading.Event()
    ref = node.allocate("one", "gpu-0")
    get = node.get

    def slowly(namespace: str, name: str, timeout: float) -> Object:
        reading.set()
        go_on.wait(5)
        return get(namespace, name, timeout)

    monkeypatch.setattr(node, "get", slowly)
    node.start()
    with ThreadPoolExecutor(2) as pool:
        prepare = pool.submit(node.driver.prepare, ref)
        assert reading.wait(5)
        unprepare = pool.submit(node.driver.unprepare, ref)
        go_on.set()
        assert names(prepare.result(5)) == ["gpu-0"]
        assert unprepare.result(5) is True
    assert node.files() == []


def test_devices_with_the_same_name_in_two_pools_are_prepared_and_rebuilt_apart(tmp_path: Path) -> None:
    node, (port,) = Node(tmp_path), (Device("port-0", "port", {}, {}),)
    boxes = [Pool(name, (port,)) for name in ("box-a", "box-b")]
    node.inventory = Inventory("worker", INVENTORY.devices, boxes)
    node.start()
    ref = node.allocate("one", "port-0", "port-0", "gpu-0")
    for result, pool in zip(node.results("one"), ["box-a", "box-b", "worker"], strict=True):
        result["pool"] = pool
    prepared = node.driver.prepare(ref)
    assert [one.cdi_ids for one in prepared] == [
        ("gpu.example/device=uid-one.gpu.port-0:pool_box-a",),
        ("gpu.example/device=uid-one.gpu.port-0:pool_box-b",),
        ("gpu.example/device=uid-one.gpu.gpu-0",),
    ]
    assert len(node.edits(ref)) == 3
    assert {"box-a", "box-b"} <= {value.partition("=")[2] for value in node.env(ref)}
    (node.folder / f"claims/{ref.uid}.json").unlink()
    node.start()
    other = node.allocate("two", "port-0")
    for pool, text in (("box-b", "still prepared for claim uid-one"), ("worker", "is not in pool worker")):
        node.results("two")[0]["pool"] = pool
        with pytest.raises(ClaimRefused, match=text):
            node.driver.prepare(other)


def test_a_claim_that_the_driver_does_not_accept_is_refused_and_leaves_nothing(node: Node) -> None:
    node.driver._collaborators = replace(node.driver._collaborators, accepted=rules(["whole-node"]))
    ref = node.allocate("one", "gpu-0")
    with pytest.raises(ClaimRefused, match="is not accepted: a claim must have all devices of the node"):
        node.driver.prepare(ref)
    assert node.driver.prepared == 0

import errno
import json
import os
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fake_driver.cdi import CdiFolder
from fake_driver.checkpoint import Checkpoint
from fake_driver.claims import ClaimRef, Object
from fake_driver.driver import Collaborators, Driver
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.hardware.model import Device
from fake_driver.inventory import Inventory

NAME = "gpu.example"
INVENTORY = Inventory("worker", tuple(Device(f"gpu-{index}", "gpu", {"uuid": f"u-{index}"}, {}) for index in range(3)))


class Node:
    """A driver on a node whose files are in a folder, and an API server that is a dict."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.api: dict[str, dict[str, Any]] = {}
        self.trouble: ApiError | None = None
        self.start()

    def start(self) -> None:
        """Start, or start again after a crash."""
        cdi = CdiFolder(self.folder / "cdi", NAME)
        checkpoint = Checkpoint(self.folder / "claims", lambda uid: cdi.remembered(uid, "worker"))
        self.driver = Driver(NAME, Collaborators(INVENTORY, self.read), cdi, checkpoint)
        self.driver.recover()

    def read(self, ref: ClaimRef) -> Object:
        if self.trouble:
            raise self.trouble
        if ref.name not in self.api:
            raise ApiError("GET claim", 404, "not found")
        return self.api[ref.name]

    def allocate(self, name: str, *devices: str, uid: str = "", request: str = "gpu", **more: Any) -> ClaimRef:
        uid = uid or f"uid-{name}"
        results = [{"request": request, "driver": NAME, "pool": "worker", "device": one, **more} for one in devices]
        self.api[name] = {"metadata": {"uid": uid}, "status": {"allocation": {"devices": {"results": results}}}}
        return ClaimRef(uid, "default", name)

    def files(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "cdi").glob("*"))

    def env(self, ref: ClaimRef) -> list[str]:
        content = json.loads((self.folder / f"cdi/{NAME}-{ref.uid}.json").read_text())
        return [value for device in content["devices"] for value in device["containerEdits"]["env"]]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def names(prepared: Any) -> list[str]:
    return [one.device.device for one in prepared]


def test_a_claim_gets_its_devices_and_their_cdi_ids(node: Node) -> None:
    ref = node.allocate("one", "gpu-0", "gpu-2")
    prepared = node.driver.prepare(ref)
    assert names(prepared) == ["gpu-0", "gpu-2"]
    assert [one.cdi_ids for one in prepared] == [
        ("gpu.example/device=uid-one.gpu.gpu-0",),
        ("gpu.example/device=uid-one.gpu.gpu-2",),
    ]
    assert {"GPU_DEVICE_GPU_0_UUID=u-0", "GPU_DEVICE_GPU_2_UUID=u-2"} <= set(node.env(ref))


def test_asked_again_it_gives_the_same_answer_and_the_file_is_back(node: Node) -> None:
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
    node.trouble = ApiError("GET claim", 0, "connection refused")
    assert node.driver.unprepare(ClaimRef(ref.uid))
    assert node.files() == []
    node.trouble = None
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


def test_admin_access_disturbs_nobody(node: Node) -> None:
    user, admin = node.allocate("one", "gpu-0"), node.allocate("admin", "gpu-0", adminAccess=True)
    node.driver.prepare(user)
    node.driver.prepare(admin)
    node.driver.unprepare(admin)
    with pytest.raises(ClaimRefused, match="still prepared"):
        node.driver.prepare(node.allocate("two", "gpu-0"))


def test_a_claim_that_was_replaced_is_refused_and_the_old_one_stays(node: Node) -> None:
    old = node.allocate("one", "gpu-0", uid="old")
    node.driver.prepare(old)
    node.allocate("one", "gpu-1", uid="new")
    with pytest.raises(ClaimRefused, match="was replaced"):
        node.driver.prepare(old)
    assert node.files() == ["gpu.example-old.json"]


def test_a_claim_that_got_other_devices_gives_the_first_ones_back(node: Node) -> None:
    node.driver.prepare(node.allocate("one", "gpu-0"))
    node.driver.prepare(node.allocate("one", "gpu-1"))
    assert names(node.driver.prepare(node.allocate("two", "gpu-0"))) == ["gpu-0"]


def test_a_claim_without_a_device_of_ours_needs_nothing(node: Node) -> None:
    assert node.driver.prepare(node.allocate("one")) == ()
    assert node.files() == []


@pytest.mark.parametrize(("device", "text"), [("gpu-9", "not in pool worker"), ("a/b", "malformed")])
def test_a_device_that_is_not_here_is_refused_without_a_trace(node: Node, device: str, text: str) -> None:
    with pytest.raises(ClaimRefused, match=text):
        node.driver.prepare(node.allocate("one", "gpu-0", device))
    assert node.files() == []
    assert names(node.driver.prepare(node.allocate("two", "gpu-0"))) == ["gpu-0"]


@pytest.mark.parametrize("status", [0, 429, 500, 503])
def test_a_prepared_claim_is_prepared_again_while_the_api_server_is_away(node: Node, status: int) -> None:
    ref = node.allocate("one", "gpu-0")
    first = node.driver.prepare(ref)
    node.trouble = ApiError("GET claim", status, "away")
    assert node.driver.prepare(ref) == first
    with pytest.raises(ClaimRefused, match=r"uid-two\) cannot be read: .*away"):
        node.driver.prepare(node.allocate("two", "gpu-1"))


def test_a_claim_that_was_deleted_is_not_prepared_from_memory(node: Node) -> None:
    ref = node.allocate("one", "gpu-0")
    node.driver.prepare(ref)
    del node.api["one"]
    with pytest.raises(ClaimRefused, match="404"):
        node.driver.prepare(ref)


def test_a_full_disk_leaves_nothing_of_the_claim(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    ref = node.allocate("one", "gpu-0")
    with monkeypatch.context() as patched:
        patched.setattr(CdiFolder, "write", full)
        with pytest.raises(OSError, match="No space left"):
            node.driver.prepare(ref)
    assert names(node.driver.prepare(node.allocate("two", "gpu-0"))) == ["gpu-0"]


def test_a_lost_checkpoint_does_not_give_a_busy_device_away(node: Node) -> None:
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


def test_unprepare_waits_for_a_prepare_of_the_same_claim_that_is_under_way(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()
    ref = node.allocate("one", "gpu-0")
    read = node.read

    def slowly(asked: ClaimRef) -> Object:
        reading.set()
        go_on.wait(5)
        return read(asked)

    monkeypatch.setattr(node, "read", slowly)
    node.start()
    with ThreadPoolExecutor(2) as pool:
        prepare = pool.submit(node.driver.prepare, ref)
        assert reading.wait(5)
        unprepare = pool.submit(node.driver.unprepare, ref)
        go_on.set()
        assert names(prepare.result(5)) == ["gpu-0"]
        assert unprepare.result(5) is True
    assert node.files() == []


class Crashes(RuleBasedStateMachine):
    """Prepares, unprepares, crashes at any write, lost CDI folders: after each, no device has two users and no file is orphaned."""

    claims = st.sampled_from(["one", "two", "three"])
    devices = st.lists(st.sampled_from(["gpu-0", "gpu-1", "gpu-2"]), min_size=1, max_size=2, unique=True)

    root: Path

    @initialize()
    def begin(self) -> None:
        self.node = Node(Path(tempfile.mkdtemp(dir=self.root)))
        self.prepared: dict[str, list[str]] = {}

    @rule(name=claims, devices=devices, crash_at=st.none() | st.integers(1, 8))
    def prepare(self, name: str, devices: list[str], crash_at: int | None) -> None:
        ref = self.node.allocate(name, *self.prepared.get(name, devices))
        busy = {device for other, theirs in self.prepared.items() if other != name for device in theirs}
        allowed = not busy & set(self.prepared.get(name, devices))
        try:
            with crashing(crash_at):
                answer = names(self.node.driver.prepare(ref))
        except ClaimRefused:
            assert not allowed
        except KeyboardInterrupt:
            self.node.start()
            if allowed:
                self.prepared[name] = names(self.node.driver.prepare(ref))
        else:
            assert allowed
            self.prepared[name] = answer

    @rule(name=claims, crash_at=st.none() | st.integers(1, 8))
    def unprepare(self, name: str, crash_at: int | None) -> None:
        ref = ClaimRef(f"uid-{name}")
        try:
            with crashing(crash_at):
                self.node.driver.unprepare(ref)
        except KeyboardInterrupt:
            self.node.start()
            self.node.driver.unprepare(ref)
        self.prepared.pop(name, None)

    @rule()
    def restart(self) -> None:
        self.node.start()

    @rule()
    def reboot(self) -> None:
        for file in (self.node.folder / "cdi").glob("*"):
            file.unlink()
        self.node.start()
        for name in self.prepared:
            self.node.driver.prepare(ClaimRef(f"uid-{name}", "default", name))

    @invariant()
    def files_are_those_of_prepared_claims(self) -> None:
        if hasattr(self, "node"):
            assert self.node.files() == sorted(f"{NAME}-uid-{name}.json" for name in self.prepared)


class crashing:  # noqa: N801 - reads as a word in a with statement
    """Dies at the n-th step that touches the disk, before or after it is done, as kill -9 would have it."""

    def __init__(self, at: int | None) -> None:
        self.left = at or 0
        self.patch = pytest.MonkeyPatch()

    def __enter__(self) -> None:
        if self.left:
            for owner, name in ((os, "fsync"), (os, "open"), (Path, "unlink"), (Path, "replace")):
                self.patch.setattr(owner, name, self._step(getattr(owner, name)))

    def __exit__(self, *_: object) -> None:
        self.patch.undo()

    def _step(self, really: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **more: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return really(*args, **more)

        return step


@pytest.fixture(autouse=True)
def _place(tmp_path: Path) -> None:
    Crashes.root = tmp_path


Crashes.TestCase.settings = hypothesis_settings(max_examples=40, stateful_step_count=15, deadline=None)
TestCrashes = Crashes.TestCase

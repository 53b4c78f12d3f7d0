import contextlib
import errno
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fake_driver.cdi import CdiFolder
from fake_driver.checkpoint import Checkpoint
from fake_driver.claims import ClaimRef, Object, PreparedClaim
from fake_driver.driver import POINTS, Collaborators, Driver
from fake_driver.errors import ApiError, ClaimRefused
from fake_driver.hardware.model import Device
from fake_driver.inventory import Inventory
from fake_driver.opaque import API_VERSION

NAME = "gpu.example"
EDITS = {"deviceNodes": [{"path": "/dev/fake2", "hostPath": "/dev/null"}]}
INVENTORY = Inventory(
    "worker",
    tuple(
        Device(f"gpu-{index}", "gpu", {"uuid": f"u-{index}"}, {}, container_edits=edits)
        for index, edits in enumerate([{}, {}, EDITS])
    ),
)


class Node:
    """A driver on a node whose files are in a folder, and an API server that is a dict."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.api: dict[str, dict[str, Any]] = {}
        self.trouble: ApiError | None = None
        self.told: list[tuple[str, str, bool]] = []
        self.die_at = ""
        self.start()

    def start(self) -> None:
        """Start, or start again after a crash."""
        cdi = CdiFolder(self.folder / "cdi", NAME)
        checkpoint = Checkpoint(self.folder / "claims", lambda uid: cdi.remembered(uid, INVENTORY.pool_of))
        use = Collaborators(INVENTORY, self.read, reports=self, reached=self.reached)
        self.driver = Driver(NAME, use, cdi, checkpoint)
        self.driver.recover()

    def reached(self, point: str) -> None:
        if point == self.die_at:
            self.die_at = ""
            raise KeyboardInterrupt

    def read(self, ref: ClaimRef, _patience: float) -> Object:
        if self.trouble:
            raise self.trouble
        if ref.name not in self.api:
            raise ApiError("GET claim", 404, "not found")
        return self.api[ref.name]

    def prepared(self, claim: PreparedClaim, served: Object | None) -> None:
        self.told.append(("prepared", claim.ref.uid, served is not None))

    def released(self, uid: str) -> None:
        self.told.append(("released", uid, False))

    def allocate(
        self, name: str, *devices: str, uid: str = "", request: str = "gpu", config: Any = (), **more: Any
    ) -> ClaimRef:
        uid = uid or f"uid-{name}"
        results = [{"request": request, "driver": NAME, "pool": "worker", "device": one, **more} for one in devices]
        allocation = {"devices": {"results": results, "config": list(config)}}
        self.api[name] = {"metadata": {"uid": uid}, "status": {"allocation": allocation}}
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


def test_what_the_hardware_file_adds_to_a_container_is_in_the_cdi_file(node: Node) -> None:
    ref = node.allocate("one", "gpu-2")
    node.driver.prepare(ref)
    content = json.loads((node.folder / f"cdi/{NAME}-{ref.uid}.json").read_text())
    assert content["devices"][0]["containerEdits"]["deviceNodes"] == EDITS["deviceNodes"]


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


def test_admin_access_disturbs_nobody_and_is_disturbed_by_nobody(node: Node) -> None:
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
def test_admin_access_is_remembered(node: Node, lost: str) -> None:
    monitor = node.allocate("monitor", "gpu-0", adminAccess=True)
    node.driver.prepare(monitor)
    if lost == "checkpoint":
        (node.folder / f"claims/{monitor.uid}.json").unlink()
    node.start()
    assert names(node.driver.prepare(node.allocate("one", "gpu-0"))) == ["gpu-0"]


def config(kind: str = "GpuConfig", source: str = "FromClaim", requests: tuple[str, ...] = (), **fields: Any) -> Any:
    parameters = {"apiVersion": API_VERSION, "kind": kind, **fields}
    return {"source": source, "requests": list(requests), "opaque": {"driver": NAME, "parameters": parameters}}


def test_configuration_reaches_the_container_also_while_the_api_server_is_away(node: Node) -> None:
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
    node.trouble = ApiError("GET claim", 0, "away")
    assert node.driver.prepare(ref) == first
    assert node.env(ref) == env


def test_configuration_that_is_wrong_is_refused_without_a_trace(node: Node) -> None:
    ref = node.allocate("one", "gpu-0", config=[config(env={"a": 1})])
    with pytest.raises(ClaimRefused, match=r"config\[0\].opaque.parameters.env.a must be a printable text"):
        node.driver.prepare(ref)
    assert node.files() == []


def test_what_was_rebuilt_from_a_cdi_file_is_not_enough_to_prepare(node: Node) -> None:
    ref = node.allocate("one", "gpu-0", config=[config(env={"a": "b"})])
    node.driver.prepare(ref)
    (node.folder / f"claims/{ref.uid}.json").unlink()
    node.start()
    node.trouble = ApiError("GET claim", 0, "away")
    with pytest.raises(ClaimRefused, match="cannot be read"):
        node.driver.prepare(ref)
    node.trouble = None
    node.driver.prepare(ref)
    assert "user_a=b" in node.env(ref)


def test_others_are_told_what_became_of_a_claim_and_again_after_a_restart(node: Node) -> None:
    ref = node.allocate("one", "gpu-0")
    node.driver.prepare(ref)
    node.start()
    node.driver.unprepare(ref)
    assert node.told == [("prepared", "uid-one", True), ("prepared", "uid-one", False), ("released", "uid-one", False)]


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

    def slowly(asked: ClaimRef, patience: float) -> Object:
        reading.set()
        go_on.wait(5)
        return read(asked, patience)

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


deaths = st.none() | st.integers(1, 8) | st.sampled_from(POINTS)


class Crashes(RuleBasedStateMachine):
    """Users and monitors come and go; the process dies at a named point or at any write; folders are lost.

    After each step no device has two users, no claim is lost, no CDI file is orphaned, and each container sees what was configured.
    """

    claims = st.sampled_from(["one", "two", "three"])
    devices = st.lists(st.sampled_from(["gpu-0", "gpu-1", "gpu-2"]), min_size=1, max_size=2, unique=True)

    root: Path

    @initialize()
    def begin(self) -> None:
        self.node = Node(Path(tempfile.mkdtemp(dir=self.root)))
        self.prepared: dict[str, tuple[list[str], bool]] = {}

    @rule(name=claims, devices=devices, admin=st.booleans(), death=deaths)
    def prepare(self, name: str, devices: list[str], admin: bool, death: int | str | None) -> None:
        wanted, admin = self.prepared.get(name, (devices, admin))
        ref = self.node.allocate(name, *wanted, adminAccess=admin, config=[config(env={"claim": name})])
        others = (theirs for other, (theirs, looks) in self.prepared.items() if other != name and not looks)
        allowed = admin or not set(wanted) & {device for theirs in others for device in theirs}
        try:
            with dying(self.node, death):
                answer = names(self.node.driver.prepare(ref))
        except ClaimRefused:
            assert not allowed
            return
        except KeyboardInterrupt:
            self.node.start()
            if not allowed:
                return
            answer = names(self.node.driver.prepare(ref))
        assert allowed
        assert answer == wanted
        self.prepared[name] = wanted, admin

    @rule(name=claims, death=deaths)
    def unprepare(self, name: str, death: int | str | None) -> None:
        ref = ClaimRef(f"uid-{name}")
        try:
            with dying(self.node, death):
                self.node.driver.unprepare(ref)
        except KeyboardInterrupt:
            self.node.start()
            self.node.driver.unprepare(ref)
        self.prepared.pop(name, None)

    @rule()
    def restart(self) -> None:
        self.node.start()

    @rule()
    def lose_the_checkpoint(self) -> None:
        for file in (self.node.folder / "claims").glob("*.json"):
            file.unlink()
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

    @invariant()
    def each_container_sees_what_was_configured_for_it(self) -> None:
        if hasattr(self, "node"):
            for name, (_, admin) in self.prepared.items():
                env = self.node.env(ClaimRef(f"uid-{name}"))
                assert {value for value in env if value.startswith("user_")} == {f"user_claim={name}"}
                assert any(value.endswith("_ADMIN_ACCESS=true") for value in env) is admin

    @invariant()
    def the_checkpoint_knows_exactly_what_is_prepared(self) -> None:
        if hasattr(self, "node"):
            found = {path.stem for path in (self.node.folder / "claims").glob("*.json")}
            assert found == {f"uid-{name}" for name in self.prepared}


@contextlib.contextmanager
def dying(node: Node, death: int | str | None) -> Iterator[None]:
    """Die at a named point, or at the n-th step that touches the disk."""
    node.die_at = death if isinstance(death, str) else ""
    try:
        with crashing(death if isinstance(death, int) else None):
            yield
    finally:
        node.die_at = ""


@pytest.mark.parametrize("point", POINTS)
def test_after_a_death_at_each_named_point_nothing_is_lost_and_nothing_is_orphaned(node: Node, point: str) -> None:
    ref = node.allocate("one", "gpu-0")
    with contextlib.suppress(KeyboardInterrupt), dying(node, point):
        node.driver.prepare(ref)
        node.driver.unprepare(ref)
        pytest.fail("it did not die")
    node.start()
    assert names(node.driver.prepare(ref)) == ["gpu-0"]
    assert node.files() == [f"{NAME}-uid-one.json"]
    node.driver.unprepare(ref)
    assert node.files() == []
    assert list((node.folder / "claims").glob("*.json")) == []
    assert names(node.driver.prepare(node.allocate("two", "gpu-0"))) == ["gpu-0"]


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

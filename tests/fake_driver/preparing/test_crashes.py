"""The process crashes at a crash point or at any write, and nothing is lost or orphaned."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fake_driver.crash_points import CRASH_POINTS
from fake_driver.errors import ClaimRefused
from fake_driver.preparing.claims import ClaimRef
from tests.fake_driver.fake_node import NAME, Node, config, names


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


crash_times = st.none() | st.integers(1, 8) | st.sampled_from(CRASH_POINTS)


class Crashes(RuleBasedStateMachine):
    """Prepares and unprepares claims, with crashes at crash points and at any write, and with lost folders.

    After each step, no device is prepared for two claims, no claim is lost, no CDI file orphaned, and containers get their configuration.
    """

    claims = st.sampled_from(["one", "two", "three"])
    devices = st.lists(st.sampled_from(["gpu-0", "gpu-1", "gpu-2"]), min_size=1, max_size=2, unique=True)

    root: Path

    @initialize()
    def begin(self) -> None:
        self.node = Node(Path(tempfile.mkdtemp(dir=self.root)))
        self.prepared: dict[str, tuple[list[str], bool]] = {}

    @rule(name=claims, devices=devices, admin=st.booleans(), crash=crash_times)
    def prepare(self, name: str, devices: list[str], admin: bool, crash: int | str | None) -> None:
        wanted, admin = self.prepared.get(name, (devices, admin))
        ref = self.node.allocate(name, *wanted, adminAccess=admin, config=[config(env={"claim": name})])
        others = (theirs for other, (theirs, looks) in self.prepared.items() if other != name and not looks)
        allowed = admin or not set(wanted) & {device for theirs in others for device in theirs}
        try:
            with crashing(self.node, crash):
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

    @rule(name=claims, crash=crash_times)
    def unprepare(self, name: str, crash: int | str | None) -> None:
        ref = ClaimRef(f"uid-{name}")
        try:
            with crashing(self.node, crash):
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
def crashing(node: Node, crash: int | str | None) -> Iterator[None]:
    """Crash at a crash point, or at the n-th operation that writes to the disk."""
    node.crash_at = crash if isinstance(crash, str) else ""
    try:
        with failing_at_operation(crash if isinstance(crash, int) else None):
            yield
    finally:
        node.crash_at = ""


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_after_a_crash_at_each_crash_point_nothing_is_lost_or_orphaned(node: Node, point: str) -> None:
    ref = node.allocate("one", "gpu-0")
    with contextlib.suppress(KeyboardInterrupt), crashing(node, point):
        node.driver.prepare(ref)
        node.driver.unprepare(ref)
        pytest.fail("the process did not crash")
    node.start()
    assert names(node.driver.prepare(ref)) == ["gpu-0"]
    assert node.files() == [f"{NAME}-uid-one.json"]
    node.driver.unprepare(ref)
    assert node.files() == []
    assert list((node.folder / "claims").glob("*.json")) == []
    assert names(node.driver.prepare(node.allocate("two", "gpu-0"))) == ["gpu-0"]


class failing_at_operation:  # noqa: N801 - reads as a word in a with statement
    """Raises KeyboardInterrupt instead of the n-th operation that writes to the disk, like kill -9."""

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

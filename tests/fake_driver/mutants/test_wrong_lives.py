"""Each of these drivers comes to grief when something starts again, in its own way; the right one does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from fake_driver.mutants import selection
from fake_driver.roles.node_driver import NodeProcess, read_parts
from fake_driver.settings import Settings

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi


class Lives:
    """Processes of one driver with a fault, one after another, and their kubelet."""

    def __init__(
        self, start_driver: Callable[..., NodeProcess], settings: Settings, kubelet: Kubelet, word: str
    ) -> None:
        self._start, self._settings, self._kubelet = start_driver, settings, kubelet
        self._words = [word] if word else []
        self.cdi = Path(settings.cdi)
        self.begin()

    def begin(self) -> None:
        """A process; one that is there already says nothing more, as if it had been killed: its sockets and connections are gone."""
        self._kubelet.close()
        self._kubelet._channels.clear()
        self.process = self._start(self._settings, partial(selection.apply, self._words))

    def prepare(self, claim: Any) -> Any:
        return self._kubelet.prepare(self._settings.data / "dra.sock", claim)[claim["uid"]]

    def unprepare(self, claim: Any) -> str:
        return str(self._kubelet.unprepare(self._settings.data / "dra.sock", claim)[claim["uid"]].error)

    def register(self) -> Any:
        return self._kubelet.register(Path(self._settings.registry) / f"{self._settings.driver}-reg.sock")

    def has_file(self, claim: Any) -> bool:
        return bool(list(self.cdi.glob(f"*{claim['uid']}.json")))


@pytest.fixture
def lives(start_driver: Callable[..., NodeProcess], settings: Settings, kubelet: Kubelet) -> Callable[[str], Lives]:
    return lambda word: Lives(start_driver, settings, kubelet, word)


def test_registers_once(lives: Callable[[str], Lives]) -> None:
    right = lives("")
    assert right.register() == right.register()


def test_registers_once_and_never_again(lives: Callable[[str], Lives]) -> None:
    wrong = lives("registers-once")
    wrong.register()
    with pytest.raises(grpc.RpcError, match="registers-once"):
        wrong.register()


@pytest.mark.parametrize(("word", "second"), [("", True), ("leaves-its-lock-behind", False)])
def test_leaves_its_lock_behind(settings: Settings, word: str, second: bool) -> None:
    def registers() -> bool:
        return selection.apply([word] if word else [], read_parts(settings)).registers

    settings.data.mkdir(parents=True)
    assert (registers(), registers()) == (True, second)


@pytest.mark.parametrize(("word", "second"), [("", "HEALTHY"), ("health-unknown-after-a-restart", "UNKNOWN")])
def test_health_unknown_after_a_restart(settings: Settings, word: str, second: str) -> None:
    def says() -> str:
        use = selection.apply([word] if word else [], read_parts(settings))
        return use.initial_health(use.inventory.devices[0]).status

    settings.data.mkdir(parents=True)
    assert (says(), says()) == ("HEALTHY", second)


@pytest.mark.parametrize(("word", "left"), [("", True), ("starts-clean", False)])
def test_starts_clean(lives: Callable[[str], Lives], fake_api: FakeApi, word: str, left: bool) -> None:
    driver, claim = lives(word), fake_api.claim()
    driver.prepare(claim)
    assert driver.has_file(claim)
    driver.begin()
    assert driver.has_file(claim) is left


@pytest.mark.parametrize(("word", "said"), [("", ""), ("unprepares-only-its-own", "prepared by another process")])
def test_unprepares_only_its_own(lives: Callable[[str], Lives], fake_api: FakeApi, word: str, said: str) -> None:
    driver, old, new = lives(word), fake_api.claim(), fake_api.claim("two", devices=("gpu-1",))
    driver.prepare(old)
    driver.begin()
    driver.prepare(new)
    assert driver.unprepare(new) == ""
    error = driver.unprepare(old)
    assert said in error
    assert bool(error) is bool(word)


@pytest.mark.parametrize(("word", "written"), [("", True), ("trusts-its-checkpoint", False)])
def test_trusts_its_checkpoint(lives: Callable[[str], Lives], fake_api: FakeApi, word: str, written: bool) -> None:
    driver, claim = lives(word), fake_api.claim()
    driver.prepare(claim)
    for file in driver.cdi.iterdir():
        file.unlink()
    assert driver.prepare(claim).devices
    assert driver.has_file(claim) is written


@pytest.mark.parametrize(("word", "said"), [("", ""), ("refuses-what-is-prepared", "is prepared already")])
def test_refuses_what_is_prepared(lives: Callable[[str], Lives], fake_api: FakeApi, word: str, said: str) -> None:
    driver, claim = lives(word), fake_api.claim()
    assert driver.prepare(claim).error == ""
    error = driver.prepare(claim).error
    assert said in error
    assert bool(error) is bool(word)


@pytest.mark.parametrize(("word", "back"), [("", True), ("deleted-slices-stay-away", False)])
def test_deleted_slices_stay_away(settings: Settings, word: str, back: bool) -> None:

    use = selection.apply([word] if word else [], read_parts(settings))
    wanted = [_slice("a", "")]
    assert use.plan(wanted, [], {}).create
    assert not use.plan(wanted, [_slice("a", "1")], {})
    assert bool(use.plan(wanted, [], {}).create) is back


@pytest.mark.parametrize(("word", "deleted"), [("", []), ("publishes-from-scratch", ["1"])])
def test_publishes_from_scratch(settings: Settings, word: str, deleted: list[str]) -> None:

    use = selection.apply([word] if word else [], read_parts(settings))
    wanted = [_slice("a", "")]
    first = use.plan(wanted, [_slice("a", "1")], {})
    assert [each["metadata"]["uid"] for each in first.delete] == deleted
    assert bool(first.create) is bool(word)
    assert not use.plan(wanted, [_slice("a", "2")], {})


@pytest.mark.parametrize(("word", "again"), [("", True), ("publishes-only-the-first-time", False)])
def test_publishes_only_the_first_time(settings: Settings, word: str, again: bool) -> None:
    settings.data.mkdir(parents=True)
    wanted = [_slice("a", "")]
    first = selection.apply([word] if word else [], read_parts(settings))
    assert first.plan(wanted, [], {}).create
    assert not first.plan(wanted, [_slice("a", "1")], {})
    assert first.plan(wanted, [], {}).create
    second = selection.apply([word] if word else [], read_parts(settings))
    assert bool(second.plan(wanted, [], {}).create) is again


def _slice(name: str, uid: str) -> Any:
    pool = {"name": "worker", "generation": 1, "resourceSliceCount": 1}
    return {"metadata": {"name": name, "uid": uid}, "spec": {"pool": pool, "nodeName": "worker", "devices": []}}

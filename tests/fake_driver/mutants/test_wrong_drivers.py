from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.mutants import cdi, selection
from fake_driver.roles.node_driver import NodeProcess
from fake_driver.settings import Settings

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi

Start = Callable[..., NodeProcess]


class Wrong:
    """A driver with a fault, and its kubelet."""

    def __init__(self, settings: Settings, kubelet: Kubelet) -> None:
        self.kubelet, self.cdi = kubelet, Path(settings.cdi)
        self._socket = settings.data / "dra.sock"

    def prepare(self, claim: Any) -> Any:
        return self.kubelet.prepare(self._socket, claim)[claim["uid"]]

    def unprepare(self, claim: Any) -> str:
        return str(self.kubelet.unprepare(self._socket, claim)[claim["uid"]].error)

    def has_file(self, claim: Any) -> bool:
        return bool(list(self.cdi.glob(f"*{claim['uid']}.json")))


@pytest.fixture
def wrong(start_driver: Start, settings: Settings, kubelet: Kubelet) -> Callable[[str], Wrong]:
    def make(word: str) -> Wrong:
        start_driver(settings, partial(selection.apply, [word] if word else []))
        return Wrong(settings, kubelet)

    return make


@pytest.mark.parametrize(("word", "said"), [("", ""), ("unprepare-fails", "mutant unprepare-fails")])
def test_unprepare_fails(wrong: Callable[[str], Wrong], fake_api: FakeApi, word: str, said: str) -> None:
    driver, claim = wrong(word), fake_api.claim()
    assert not driver.prepare(claim).error
    assert said in driver.unprepare(claim)
    assert driver.has_file(claim) is bool(word)


@pytest.mark.parametrize(("word", "said"), [("", ""), ("never-give-back", "was not unprepared yet")])
def test_never_give_back(wrong: Callable[[str], Wrong], fake_api: FakeApi, word: str, said: str) -> None:
    driver, claim = wrong(word), fake_api.claim()
    driver.prepare(claim)
    assert driver.unprepare(claim) == ""
    assert not driver.has_file(claim)
    error = driver.prepare(fake_api.claim("two")).error
    assert said in error
    assert bool(error) is bool(word)


@pytest.mark.parametrize(("word", "left"), [("", True), ("unprepare-forgets-the-device", False)])
def test_unprepare_forgets_the_device(wrong: Callable[[str], Wrong], fake_api: FakeApi, word: str, left: bool) -> None:
    driver, user, monitor = wrong(word), fake_api.claim("user"), fake_api.claim("monitor", adminAccess=True)
    other = fake_api.claim("other", devices=("gpu-1",))
    for claim in (user, monitor, other):
        driver.prepare(claim)
    driver.unprepare(monitor)
    assert driver.has_file(user) is left
    assert driver.has_file(other)


def test_cdi_file_is_lost(wrong: Callable[[str], Wrong], fake_api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdi, "_SECONDS_UNTIL_CONTAINERS_RUN", 0)
    driver, claim = wrong("cdi-file-is-lost"), fake_api.claim()
    assert driver.prepare(claim).devices
    fake_api.wait_until(lambda: not driver.has_file(claim))


@pytest.mark.parametrize(("word", "count"), [("", 2), ("first-device-only", 1)])
def test_first_device_only(wrong: Callable[[str], Wrong], fake_api: FakeApi, word: str, count: int) -> None:
    assert len(wrong(word).prepare(fake_api.claim(devices=("gpu-0", "gpu-1"))).devices) == count


@pytest.mark.parametrize(("word", "names"), [("", ["left", "right"]), ("forget-request-names", ["right", "left"])])
def test_forget_request_names(wrong: Callable[[str], Wrong], fake_api: FakeApi, word: str, names: list[str]) -> None:
    claim = fake_api.claim(devices=("gpu-0", "gpu-1"))
    results = fake_api.claims["default", "one"]["status"]["allocation"]["devices"]["results"]
    results[0]["request"], results[1]["request"] = "left", "right"
    assert [list(device.request_names) for device in wrong(word).prepare(claim).devices] == [[name] for name in names]


@pytest.mark.parametrize(("word", "name"), [("", "gpu"), ("answer-with-subrequest-names", "gpu/big")])
def test_answer_with_subrequest_names(wrong: Callable[[str], Wrong], fake_api: FakeApi, word: str, name: str) -> None:
    claim = fake_api.claim()
    fake_api.claims["default", "one"]["status"]["allocation"]["devices"]["results"][0]["request"] = "gpu/big"
    (device,) = wrong(word).prepare(claim).devices
    assert list(device.request_names) == [name]


@pytest.mark.parametrize(("word", "same"), [("", False), ("know-claims-by-name", True)])
def test_know_claims_by_name(wrong: Callable[[str], Wrong], fake_api: FakeApi, word: str, same: bool) -> None:
    driver, claim = wrong(word), fake_api.claim()
    (before,) = driver.prepare(claim).devices
    driver.unprepare(claim)
    (after,) = driver.prepare(fake_api.claim(uid="2e000000-0000-4000-8000-000000000001")).devices
    assert (list(before.cdi_device_ids) == list(after.cdi_device_ids)) is same


@pytest.mark.parametrize(("word", "said"), [("", "belongs to pool elsewhere"), ("know-devices-by-name", "")])
def test_know_devices_by_name(wrong: Callable[[str], Wrong], fake_api: FakeApi, word: str, said: str) -> None:
    claim = fake_api.claim()
    fake_api.claims["default", "one"]["status"]["allocation"]["devices"]["results"][0]["pool"] = "elsewhere"
    error = wrong(word).prepare(claim).error
    assert said in error
    assert bool(error) is not bool(word)


@pytest.mark.parametrize(("word", "names"), [("", 2), ("cdi-names-of-devices", 1)])
def test_cdi_names_of_devices(wrong: Callable[[str], Wrong], fake_api: FakeApi, word: str, names: int) -> None:
    driver, claim = wrong(word), fake_api.claim()
    (before,) = driver.prepare(claim).devices
    assert driver.has_file(claim)
    driver.unprepare(claim)
    (after,) = driver.prepare(fake_api.claim("two")).devices
    assert len({*before.cdi_device_ids, *after.cdi_device_ids}) == names


@pytest.mark.parametrize(
    ("word", "namespaces", "versions"),
    [
        ("", {"default"}, ["v1beta1", "v1alpha1"]),
        ("metadata-of-another-namespace", {"elsewhere"}, ["v1beta1", "v1alpha1"]),
        ("metadata-oldest-first", {"default"}, ["v1alpha1", "v1beta1"]),
    ],
)
def test_wrong_metadata(
    start_driver: Start,
    settings: Settings,
    kubelet: Kubelet,
    fake_api: FakeApi,
    word: str,
    namespaces: set[str],
    versions: list[str],
) -> None:
    with_metadata = replace(settings, metadata="v1beta1,v1alpha1")
    start_driver(with_metadata, partial(selection.apply, [word] if word else []))
    assert not Wrong(with_metadata, kubelet).prepare(fake_api.claim()).error
    (path,) = (settings.data / "metadata").rglob("*.json")
    said = path.read_text()
    assert set(re.findall(r'"namespace": "(\w+)"', said)) == namespaces
    assert re.findall(r"metadata\.resource\.k8s\.io/(\w+)", said) == versions

"""The attach controller with the fake API server, which implements server-side apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.api.backoff import Backoff
from fake_driver.api.client import ApiClient
from fake_driver.devices.model import AttachBehavior, Binding, Device
from fake_driver.errors import ClaimRefused
from fake_driver.journal import Journal
from fake_driver.roles.attaching_controller import AttachController

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi

DRIVER = "gpu.dra-testbed.example"
CONDITIONS: dict[str, Any] = {"bindingConditions": ["attached"], "bindingFailureConditions": ["failed"]}


@pytest.fixture
def attach(server: str, tmp_path: Path) -> Iterator[Callable[..., AttachController]]:
    """Start an attach controller for devices with this attach behavior."""
    running: list[tuple[AttachController, ApiClient]] = []

    def started(seconds: int = 0, failures: int = 0) -> AttachController:
        told = {
            "gpu-0": AttachBehavior(seconds, failures),
            "gpu-1": AttachBehavior(seconds, failures),
            "of-others": None,
        }

        def find(pool: str, name: str) -> Device:
            if name not in told:
                raise ClaimRefused(f"no {name} in {pool}")
            return Device(name, "gpu", {}, {}, binding=Binding(("attached",), ("failed",), attaching=told[name]))

        api = ApiClient(server)
        running.append((AttachController(api, DRIVER, find, Journal(tmp_path / "journal.jsonl")), api))
        running[-1][0].start()
        return running[-1][0]

    yield started
    for one, api in running:
        api.close()
        one.stop()


def said(fake_api: FakeApi, name: str = "one") -> list[str]:
    return [condition["type"] for entry in fake_api.status(name) for condition in entry["conditions"]]


def test_existing_and_new_claims_are_attached(attach: Callable[..., AttachController], fake_api: FakeApi) -> None:
    fake_api.claim("old", **CONDITIONS)
    attach()
    fake_api.wait_until(lambda: said(fake_api, "old") == ["attached"])
    fake_api.claim("new", ("gpu-1",), **CONDITIONS)
    fake_api.wait_until(lambda: said(fake_api, "new") == ["attached"])
    assert all(manager.startswith(f"{DRIVER}-attacher-") for manager, _ in fake_api.applied)


def test_each_device_of_a_claim_is_attached_and_stays_attached(
    attach: Callable[..., AttachController], fake_api: FakeApi, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    attacher = attach()
    fake_api.claim("one", ("gpu-0", "gpu-1"), **CONDITIONS)
    fake_api.wait_until(lambda: len(fake_api.applied) == 2)
    wait_until(lambda: attacher._queue.claim_uids() == set())
    assert sorted(entry["device"] for entry in fake_api.status()) == ["gpu-0", "gpu-1"]
    assert all(len(manager) <= 128 for manager, _ in fake_api.applied)


def test_attached_devices_stay_attached_when_another_process_attaches_the_rest(
    attach: Callable[..., AttachController], fake_api: FakeApi
) -> None:
    refused = lambda method, _path: (503, "not yet") if method == "PATCH" and fake_api.applied else None  # noqa: E731
    fake_api.refuse = refused
    first = attach()
    fake_api.claim("one", ("gpu-0", "gpu-1"), **CONDITIONS)
    fake_api.wait_until(lambda: len(fake_api.applied) == 1)
    first._api.close()
    first.stop()
    fake_api.refuse = lambda _method, _path: None
    attach()
    fake_api.wait_until(lambda: said(fake_api) == ["attached", "attached"])


def test_a_condition_that_another_client_removed_is_written_again(
    attach: Callable[..., AttachController], fake_api: FakeApi, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    attacher = attach()
    fake_api.claim("one", ("gpu-0", "gpu-1"), **CONDITIONS)
    fake_api.wait_until(lambda: said(fake_api) == ["attached", "attached"])
    wait_until(lambda: attacher._queue.claim_uids() == set())
    claim = fake_api.claims["default", "one"]
    fake_api.put_claim({**claim, "status": {**claim["status"], "devices": claim["status"]["devices"][:1]}})
    fake_api.wait_until(lambda: said(fake_api) == ["attached", "attached"])


def test_a_device_without_binding_conditions_is_ignored(
    attach: Callable[..., AttachController], fake_api: FakeApi
) -> None:
    attach()
    fake_api.claim("plain")
    fake_api.claim("bound", ("gpu-1",), **CONDITIONS)
    fake_api.wait_until(lambda: said(fake_api, "bound") == ["attached"])
    assert fake_api.status("plain") == []


def test_attaching_fails_as_often_as_the_hardware_file_says(
    attach: Callable[..., AttachController], fake_api: FakeApi
) -> None:
    attach(failures=1)
    fake_api.claim("one", **CONDITIONS)
    fake_api.wait_until(lambda: said(fake_api) == ["failed"])
    fake_api.claim("one", ())  # the scheduler takes the device back, and allocates it once more
    fake_api.claim("one", **CONDITIONS)
    fake_api.wait_until(lambda: said(fake_api) == ["attached"])


def test_a_device_that_is_deallocated_early_is_not_attached(
    attach: Callable[..., AttachController], fake_api: FakeApi, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    attacher = attach(seconds=600)
    fake_api.claim("one", **CONDITIONS)
    fake_api.claim("two", ("gpu-1",), **CONDITIONS)
    wait_until(lambda: len(attacher._queue.claim_uids()) == 2)
    fake_api.claim("one", ())
    fake_api.remove_claim("two")
    wait_until(lambda: attacher._queue.claim_uids() == set())
    assert fake_api.applied == []


def test_a_refused_write_is_retried(attach: Callable[..., AttachController], fake_api: FakeApi) -> None:
    refusals = [(422, "not yet"), (503, "not yet")]
    fake_api.refuse = lambda method, _path: refusals.pop() if method == "PATCH" and refusals else None
    attach()
    fake_api.claim("one", **CONDITIONS)
    fake_api.wait_until(lambda: said(fake_api) == ["attached"])
    assert refusals == []


def test_a_claim_that_was_deleted_between_two_watches_is_forgotten(
    attach: Callable[..., AttachController], fake_api: FakeApi, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    attacher = attach(seconds=600)
    fake_api.claim("one", **CONDITIONS)
    wait_until(lambda: len(attacher._queue.claim_uids()) == 1)
    del fake_api.claims["default", "one"]
    fake_api.end_watches()
    wait_until(lambda: attacher._queue.claim_uids() == set())


@pytest.mark.parametrize("device", ["of-others", "left-the-file"])
def test_a_device_without_attaching_in_the_hardware_file_is_ignored(
    attach: Callable[..., AttachController], fake_api: FakeApi, device: str
) -> None:
    fake_api.claim("not-mine", (device,), **CONDITIONS)
    attach()
    fake_api.claim("mine", ("gpu-1",), **CONDITIONS)
    fake_api.wait_until(lambda: said(fake_api, "mine") == ["attached"])
    assert fake_api.status("not-mine") == []


def test_the_attach_controller_reports_whether_it_is_alive(
    attach: Callable[..., AttachController], fake_api: FakeApi
) -> None:
    attacher = attach()
    assert attacher.is_alive
    fake_api.close()
    attacher._api.close()
    attacher.stop()
    assert not attacher.is_alive


def test_watches_that_end_immediately_are_retried_with_back_off(
    attach: Callable[..., AttachController],
    fake_api: FakeApi,
    backoffs: list[Backoff],
    wait_until: Callable[[Callable[[], bool]], None],
) -> None:
    lists: list[int] = []

    def count(method: str, path: str) -> None:
        lists.extend([len(backoffs)] * (method == "GET" and path.endswith("/resourceclaims")))

    fake_api.refuse = count
    fake_api.close()
    attach()
    wait_until(lambda: len(lists) >= 4)
    assert lists[:4] == [0, 1, 2, 3]


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_claims_are_attached_in_an_older_api_version(
    attach: Callable[..., AttachController], fake_api: FakeApi, version: str
) -> None:
    fake_api.versions = [version]
    fake_api.claim("old", **CONDITIONS)
    attach()
    fake_api.wait_until(lambda: said(fake_api, "old") == ["attached"])
    fake_api.claim("new", ("gpu-1",), **CONDITIONS)
    fake_api.wait_until(lambda: said(fake_api, "new") == ["attached"])

"""The status reporter with a fake API server that implements server-side apply."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.api.claim_client import ClaimClient
from fake_driver.api.client import ApiClient
from fake_driver.journal import Journal
from fake_driver.preparing import status_reporter
from fake_driver.preparing.claims import ClaimRef, PreparedClaim, read_allocation
from fake_driver.preparing.status_reporter import StatusReporter, field_manager

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi

DRIVER = "gpu.dra-testbed.example"


@pytest.fixture
def make(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., StatusReporter]]:
    """Start reporters with short delays."""
    monkeypatch.setattr(status_reporter, "_FIRST_DELAY", 0.01)
    monkeypatch.setattr(status_reporter, "_QUIET", 0.01)
    running: list[tuple[StatusReporter, ApiClient]] = []

    def made(
        driver: str = DRIVER,
        node: str = "worker",
        status_data: Callable[..., Any] = lambda allocated: {"data": {"of": allocated.device}},
    ) -> StatusReporter:
        api = ApiClient(server)
        running.append(
            (StatusReporter(ClaimClient(api), driver, node, status_data, Journal(tmp_path / "journal.jsonl")), api)
        )
        running[-1][0].start()
        return running[-1][0]

    yield made
    for one, api in running:
        api.close()
        one.stop()


def claim(fake_api: FakeApi, *devices: str, name: str = "one") -> PreparedClaim:
    ref = ClaimRef(**fake_api.claim(name, devices or ("gpu-0",)))
    return read_allocation(fake_api.claims["default", name], ref, DRIVER)


def test_each_device_has_its_entry(make: Callable[..., StatusReporter], fake_api: FakeApi) -> None:
    make().prepared(claim(fake_api, "gpu-0", "gpu-1"), None)
    fake_api.wait_until(lambda: len(fake_api.status()) == 2)
    assert [(entry["device"], entry["data"]) for entry in fake_api.status()] == [
        ("gpu-0", {"of": "gpu-0"}),
        ("gpu-1", {"of": "gpu-1"}),
    ]
    assert all(entry["conditions"][0]["type"] == "Ready" for entry in fake_api.status())


def test_a_status_waits_while_claims_arrive_but_only_for_a_limited_time(
    make: Callable[..., StatusReporter], fake_api: FakeApi
) -> None:
    one = make()
    one.prepared(claim(fake_api), None)
    quiet = one._quiet_at

    assert one._start_time(quiet - 1) == quiet
    assert one._start_time(quiet - 60) == quiet - 60 + status_reporter._LONGEST_WAIT_FOR_QUIET
    assert one._start_time(quiet + 5) == quiet + 5


def test_a_status_that_is_present_is_not_written_again(make: Callable[..., StatusReporter], fake_api: FakeApi) -> None:
    one = claim(fake_api)
    first = make()
    first.prepared(one, None)
    fake_api.wait_until(lambda: len(fake_api.applied) == 1)
    first.prepared(one, None)
    first.prepared(claim(fake_api, name="two"), None)
    fake_api.wait_until(lambda: len(fake_api.status("two")) == 1)
    assert len(fake_api.applied) == 2


def test_two_drivers_write_with_their_own_field_managers(
    make: Callable[..., StatusReporter], fake_api: FakeApi
) -> None:
    one = claim(fake_api, "gpu-0")
    results = fake_api.claims["default", "one"]["status"]["allocation"]["devices"]["results"]
    results.append({**results[0], "driver": "nic.example", "device": "nic-0"})
    make().prepared(one, None)
    other = read_allocation(fake_api.claims["default", "one"], one.ref, "nic.example")
    make("nic.example").prepared(other, None)
    fake_api.wait_until(lambda: len(fake_api.status()) == 2)
    assert {entry["driver"] for entry in fake_api.status()} == {DRIVER, "nic.example"}
    assert {name for name, _ in fake_api.applied} == {f"{DRIVER}-worker", "nic.example-worker"}


def test_a_field_manager_has_at_most_128_letters_and_belongs_to_one_node() -> None:
    long = [field_manager("d" * 63, "n" * 200 + digit) for digit in "12"]
    assert max(map(len, long)) == 128
    assert len(set(long)) == 2


@pytest.mark.parametrize("status", [403, 409, 422, 429, 500])
def test_a_failed_write_is_retried_until_it_succeeds(
    make: Callable[..., StatusReporter], fake_api: FakeApi, status: int
) -> None:
    attempts: list[str] = []

    def refuse(method: str, _path: str) -> tuple[int, str] | None:
        if method != "PATCH":
            return None
        attempts.append(method)
        return (status, "not now") if len(attempts) < 4 else None

    fake_api.refuse = refuse
    make().prepared(claim(fake_api), None)
    fake_api.wait_until(lambda: bool(fake_api.status()))
    assert len(attempts) == 4


def test_a_failure_is_logged_as_a_warning_once(
    make: Callable[..., StatusReporter], fake_api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    asked = threading.Semaphore(0)

    def refuse(method: str, _path: str) -> tuple[int, str] | None:
        if method != "PATCH":
            return None
        asked.release()
        return 422, "changing status.devices requires permission"

    fake_api.refuse = refuse
    make().prepared(claim(fake_api), None)
    assert all(asked.acquire(timeout=5) for _ in range(4))
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "requires permission" in warnings[0]


def test_the_thread_survives_an_internal_error(
    make: Callable[..., StatusReporter], fake_api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []

    def status_data(allocated: Any) -> dict[str, Any]:
        calls.append(allocated.device)
        if len(calls) == 1:
            raise KeyError("oops")
        return {"data": {}}

    make(status_data=status_data).prepared(claim(fake_api), None)
    fake_api.wait_until(lambda: bool(fake_api.status()))
    assert "oops" in caplog.text


@pytest.mark.parametrize("change", ["deleted", "replaced", "deallocated", "reallocated"])
def test_the_status_of_a_changed_claim_is_not_written(
    make: Callable[..., StatusReporter], fake_api: FakeApi, change: str
) -> None:
    old = claim(fake_api)
    if change == "deleted":
        del fake_api.claims["default", "one"]
    elif change == "replaced":
        fake_api.claim(uid="another")
    else:
        fake_api.claim(devices=("gpu-1",) if change == "reallocated" else ())
    asked = make()
    asked.prepared(old, None)
    asked.prepared(claim(fake_api, name="next"), None)
    fake_api.wait_until(lambda: bool(fake_api.status("next")))
    assert len(fake_api.applied) == 1
    assert old.ref.uid not in asked._jobs


def test_the_status_of_a_released_claim_is_not_written(make: Callable[..., StatusReporter], fake_api: FakeApi) -> None:
    fake_api.gate.clear()
    one, busy = claim(fake_api), claim(fake_api, name="busy")
    asked = make()
    asked.prepared(busy, None)
    asked.prepared(one, None)
    asked.released(one.ref.uid)
    fake_api.gate.set()
    fake_api.wait_until(lambda: bool(fake_api.status("busy")))
    asked.prepared(claim(fake_api, name="next"), None)
    fake_api.wait_until(lambda: bool(fake_api.status("next")))
    assert fake_api.status("one") == []


def test_the_status_of_a_claim_without_a_known_name_is_not_written(
    make: Callable[..., StatusReporter], fake_api: FakeApi
) -> None:
    one = claim(fake_api)
    asked = make()
    asked.prepared(PreparedClaim(ClaimRef(one.ref.uid), one.devices), None)
    assert asked._jobs == {}


def test_fields_that_the_server_drops_are_logged_once(
    make: Callable[..., StatusReporter], fake_api: FakeApi, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    fake_api.keep_status = lambda _devices: []
    asked = make()
    for name in ("one", "two"):
        asked.prepared(claim(fake_api, name=name), None)
    fake_api.wait_until(lambda: len(fake_api.applied) == 2)
    fake_api.keep_status = lambda devices: devices
    asked.prepared(claim(fake_api, name="three"), None)
    fake_api.wait_until(lambda: bool(fake_api.status("three")))
    warning = "dropped fields of the device status, probably because a feature gate is off: status.devices[gpu-0]"
    assert caplog.text.count(f"the API server {warning}") == 1
    assert (tmp_path / "journal.jsonl").read_text().count("status-fields-dropped") == 1

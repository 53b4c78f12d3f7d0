from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from fake_driver.mutants import cdi
from testbed import folders

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import StartMutant


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("", "GPU_DEVICE_GPU_2=gpu-2"),
        ("share-one-device", "GPU_DEVICE_GPU_0=gpu-0"),
        ("env-of-another-device", "GPU_DEVICE_GPU_1=gpu-1"),
        ("no-env", "FAKE_DRIVER_FAULT=no-env"),
    ],
)
def test_variables_of_a_device(mutant: StartMutant, fake_api: FakeApi, name: str, variable: str) -> None:
    driver = mutant(name)
    (device,) = driver.prepare(fake_api.claim(devices=("gpu-2",))).devices
    assert device.device_name == "gpu-2"
    assert variable in driver.env
    assert (driver.env == {variable}) is (name == "no-env")


@pytest.mark.parametrize(("name", "is_wrong"), [("", False), ("no-env-for-administrators", True)])
def test_no_env_for_administrators(mutant: StartMutant, fake_api: FakeApi, name: str, is_wrong: bool) -> None:
    driver = mutant(name)
    driver.prepare(fake_api.claim(adminAccess=True))
    assert (not any("GPU_DEVICE" in each for each in driver.env)) is is_wrong


@pytest.mark.parametrize(("name", "is_wrong"), [("", False), ("no-env-for-passthrough", True)])
def test_no_env_for_passthrough(mutant: StartMutant, fake_api: FakeApi, name: str, is_wrong: bool) -> None:
    driver = mutant(name, hardware=str(folders.data("manifests") / "hardware/two-classes.yaml"))
    driver.prepare(fake_api.claim("one", ("gpu-0",)))
    assert any("GPU_DEVICE_GPU_0" in each for each in driver.env)  # of the class native
    driver.prepare(fake_api.claim("two", ("gpu-7",)))
    assert (not any("GPU_DEVICE_GPU_7" in each for each in driver.env)) is is_wrong


def test_cdi_file_is_lost(mutant: StartMutant, fake_api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdi, "_SECONDS_UNTIL_CONTAINERS_RUN", 0)
    driver, claim = mutant("cdi-file-is-lost"), fake_api.claim()
    assert driver.prepare(claim).devices
    fake_api.wait_until(lambda: not driver.has_cdi_file(claim))


def test_cdi_files_end_with_the_driver(mutant: StartMutant, fake_api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    at_the_end: list[Callable[[], object]] = []
    monkeypatch.setattr("atexit.register", at_the_end.append)
    driver, claim = mutant("cdi-files-end-with-the-driver"), fake_api.claim()
    assert driver.prepare(claim).devices
    assert driver.has_cdi_file(claim)
    for each in at_the_end:
        each()
    assert not driver.has_cdi_file(claim)


def test_cdi_file_is_replaced(mutant: StartMutant, fake_api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdi, "_SECONDS_UNTIL_CONTAINERS_RUN", 0)
    driver, claim = mutant("cdi-file-is-replaced"), fake_api.claim()
    (device,) = driver.prepare(claim).devices
    fake_api.wait_until(lambda: driver.env == {"FAKE_DRIVER_FAULT=cdi-file-is-replaced"})
    assert driver.cdi_ids == {*device.cdi_device_ids}
    driver.unprepare(claim)
    assert driver.cdi_files == []


def test_cdi_file_is_completed_late(mutant: StartMutant, fake_api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdi, "_SECONDS_UNTIL_CONTAINERS_RUN", 0.2)
    driver, claim = mutant("cdi-file-is-completed-late"), fake_api.claim()
    driver.prepare(claim)
    assert f"FAKE_DRIVER_CLAIM={claim['uid']}" not in driver.env
    fake_api.wait_until(lambda: f"FAKE_DRIVER_CLAIM={claim['uid']}" in driver.env)


@pytest.mark.parametrize(("name", "is_same"), [("", False), ("reuse-cdi-names", True)])
def test_reuse_cdi_names(mutant: StartMutant, fake_api: FakeApi, name: str, is_same: bool) -> None:
    driver = mutant(name)
    (one,) = driver.prepare(fake_api.claim()).devices
    (two,) = driver.prepare(fake_api.claim("two", devices=("gpu-1",))).devices
    assert (list(one.cdi_device_ids) == list(two.cdi_device_ids)) is is_same


@pytest.mark.parametrize(("name", "ids"), [("", 2), ("cdi-names-of-devices", 1)])
def test_cdi_names_of_devices(mutant: StartMutant, fake_api: FakeApi, name: str, ids: int) -> None:
    driver, claim = mutant(name), fake_api.claim()
    (before,) = driver.prepare(claim).devices
    assert driver.has_cdi_file(claim)
    driver.unprepare(claim)
    (after,) = driver.prepare(fake_api.claim("two")).devices
    assert len({*before.cdi_device_ids, *after.cdi_device_ids}) == ids


@pytest.mark.parametrize(("name", "is_same"), [("cdi-names-of-devices", True), ("cdi-content-of-each-claim", False)])
def test_cdi_content_of_each_claim(mutant: StartMutant, fake_api: FakeApi, name: str, is_same: bool) -> None:
    driver, claim = mutant(name), fake_api.claim()
    driver.prepare(claim)
    ids, before = driver.cdi_ids, driver.env
    driver.unprepare(claim)
    driver.prepare(fake_api.claim("two"))
    assert driver.cdi_ids == ids
    assert (driver.env == before) is is_same


def test_one_growing_cdi_file(mutant: StartMutant, fake_api: FakeApi) -> None:
    driver, claim = mutant("one-growing-cdi-file"), fake_api.claim()
    (first,) = driver.prepare(claim).devices
    before = driver.env
    driver.unprepare(claim)
    (second,) = driver.prepare(fake_api.claim("two")).devices
    assert {*first.cdi_device_ids} == {*second.cdi_device_ids} == driver.cdi_ids
    assert driver.env > before
    assert len(driver.cdi_files) == 1


@pytest.mark.parametrize(("name", "is_defined"), [("", True), ("wrong-cdi-names", False)])
def test_wrong_cdi_names(mutant: StartMutant, fake_api: FakeApi, name: str, is_defined: bool) -> None:
    driver = mutant(name)
    (device,) = driver.prepare(fake_api.claim()).devices
    assert (set(device.cdi_device_ids) <= driver.cdi_ids) is is_defined


@pytest.mark.parametrize(("name", "files"), [("", 2), ("one-cdi-file-for-all", 1)])
def test_one_cdi_file_for_all(mutant: StartMutant, fake_api: FakeApi, name: str, files: int) -> None:
    driver = mutant(name)
    driver.prepare(fake_api.claim("one"))
    driver.prepare(fake_api.claim("two", devices=("gpu-1",)))
    assert len(driver.cdi_files) == files

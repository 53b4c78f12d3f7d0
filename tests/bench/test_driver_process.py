"""The checks of a running driver: its process, its CDI files and its socket."""

import os
from pathlib import Path

import pytest

from testbed.bench.driver_process import DriverProcess
from testbed.bench.measured_drivers import DriverEnvironment, fake_driver
from testbed.errors import DriverFailed
from testbed.process import ProcessId


@pytest.fixture
def driver(tmp_path: Path) -> DriverProcess:
    """Return the current process as a driver that has prepared one claim."""
    (tmp_path / "one.yaml").write_text("kind: a/b\ndevices: [{name: uid-1-gpu}, {name: common}]\n")
    (tmp_path / ".unfinished").write_text("{")
    (tmp_path / "log").write_text("first\nlast line\n")
    environment = DriverEnvironment(tmp_path, tmp_path, tmp_path, "https://a", tmp_path, tmp_path, tmp_path, "bench")
    me = ProcessId.of(os.getpid())
    assert me
    return DriverProcess(fake_driver(), me, environment, tmp_path / "log")


def test_a_claim_is_prepared_if_cdi_files_define_all_its_ids(driver: DriverProcess) -> None:
    driver.check_prepared({"uid-1": ("a/b=uid-1-gpu", "a/b=common")})


@pytest.mark.parametrize("names", [(), ("a/b=uid-1-gpu", "a/b=uid-2-gpu"), ("x/b=common",)])
def test_missing_and_undefined_cdi_ids_are_a_failure(driver: DriverProcess, names: tuple[str, ...]) -> None:
    with pytest.raises(DriverFailed, match="no CDI file defines them"):
        driver.check_prepared({"uid-1": names})


def test_a_cdi_device_that_is_left_after_unprepare_is_a_failure(driver: DriverProcess) -> None:
    driver.check_unprepared(["uid-2"])
    with pytest.raises(DriverFailed, match="did not remove CDI devices"):
        driver.check_unprepared(["uid-1"])


def test_the_failure_of_a_driver_that_ended_has_its_last_log_line(driver: DriverProcess) -> None:
    driver.check_alive()
    dead = DriverProcess(driver.driver, ProcessId(os.getpid(), 0), driver.environment, driver.log)
    for check in (dead.check_alive, lambda: dead.resident_mib):
        with pytest.raises(DriverFailed, match="ended; its last log line: last line"):
            check()


def test_the_resident_memory_is_that_of_the_process(driver: DriverProcess) -> None:
    assert driver.resident_mib > 10


def test_a_missing_registration_socket_is_a_failure(driver: DriverProcess) -> None:
    with pytest.raises(DriverFailed, match="0 registration sockets"):
        _ = driver.registration

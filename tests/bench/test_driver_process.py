"""When a driver's work counts as done."""

import os
from pathlib import Path

import pytest

from testbed.bench.driver_process import DriverProcess
from testbed.bench.measured_drivers import DriverEnvironment, fake_driver
from testbed.errors import DriverFailed
from testbed.process import ProcessId


@pytest.fixture
def driver(tmp_path: Path) -> DriverProcess:
    """This very process, as if it were a driver; it has prepared one claim."""
    (tmp_path / "one.yaml").write_text("kind: a/b\ndevices: [{name: uid-1-gpu}, {name: common}]\n")
    (tmp_path / ".unfinished").write_text("{")
    (tmp_path / "log").write_text("first\nlast words\n")
    environment = DriverEnvironment(tmp_path, tmp_path, tmp_path, "https://a", tmp_path, tmp_path, tmp_path, "bench")
    me = ProcessId.of(os.getpid())
    assert me
    return DriverProcess(fake_driver(), me, environment, tmp_path / "log")


def test_an_answer_counts_when_files_define_all_its_names(driver: DriverProcess) -> None:
    driver.check_prepared({"uid-1": ("a/b=uid-1-gpu", "a/b=common")})


@pytest.mark.parametrize("names", [(), ("a/b=uid-1-gpu", "a/b=uid-2-gpu"), ("x/b=common",)])
def test_an_answer_without_names_or_with_unknown_ones_does_not_count(
    driver: DriverProcess, names: tuple[str, ...]
) -> None:
    with pytest.raises(DriverFailed, match="no CDI file says"):
        driver.check_prepared({"uid-1": names})


def test_a_claim_that_is_left_in_a_file_was_not_released(driver: DriverProcess) -> None:
    driver.check_unprepared(["uid-2"])
    with pytest.raises(DriverFailed, match="left CDI devices behind"):
        driver.check_unprepared(["uid-1"])


def test_a_driver_that_ended_is_told_with_its_last_words(driver: DriverProcess) -> None:
    driver.check_alive()
    dead = DriverProcess(driver.driver, ProcessId(os.getpid(), 0), driver.environment, driver.log)
    for ask in (dead.check_alive, lambda: dead.resident_mib):
        with pytest.raises(DriverFailed, match="ended: last words"):
            ask()


def test_the_memory_is_that_of_the_process(driver: DriverProcess) -> None:
    assert driver.resident_mib > 10


def test_without_a_registration_socket_nobody_can_call(driver: DriverProcess) -> None:
    with pytest.raises(DriverFailed, match="0 registration sockets"):
        _ = driver.registration

"""The pure parts of `tox -e vm`; the machine itself is tried by running it."""

from __future__ import annotations

import os
import re
import tarfile
import time
from pathlib import Path

import pytest

from ci.vm import __main__ as vm
from ci.vm import guest, job
from ci.vm.machine import Deadline, Machine, VmFailed, call, command, live, make_disk, says_something

PRINTS = ["sh", "-c", "echo one; echo two"]
STAYS = ["sh", "-c", "echo $$; exec sleep 60"]


def machine(**changes: str) -> Machine:
    return Machine(Path("/boot"), Path("/job.img"), Path("/result.img"), Path("/console.log"), **changes)  # type: ignore[arg-type] # strings only


def words_after(argv: list[str], flag: str) -> list[str]:
    return [argv[place + 1] for place, word in enumerate(argv) if word == flag]


def test_a_machine_has_no_network() -> None:
    assert words_after(command(machine(), "tcg"), "-nic") == ["none"]


def test_a_machine_dies_with_whoever_started_it() -> None:
    assert command(machine(), "tcg")[:4] == ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"]


def test_only_the_disk_with_the_result_keeps_what_is_written() -> None:
    disks = words_after(command(machine(), "tcg"), "-drive")

    assert [re.findall(r"snapshot=on|file=[^,]+", disk) for disk in disks] == [
        ["file=/boot/root.img", "snapshot=on"],
        ["file=/job.img", "snapshot=on"],
        ["file=/result.img"],
    ]


@pytest.mark.parametrize(("accel", "said"), [("kvm", "kvm"), ("tcg", "tcg,thread=multi")])
def test_an_emulated_machine_uses_all_processors_too(accel: str, said: str) -> None:
    assert words_after(command(machine(), accel), "-accel") == [said]


@pytest.mark.parametrize(
    ("script", "works"), [("echo Linux; exec sleep 60", True), ("exit 1", False), ("exec sleep 60", False)]
)
def test_only_a_kernel_that_says_something_shows_that_a_machine_works(script: str, works: bool) -> None:
    began = time.monotonic()

    assert says_something(["sh", "-c", script], 5 if works else 0.3) is works
    assert time.monotonic() - began < 20


def test_the_console_and_the_job_have_a_port_each() -> None:
    argv = command(machine(), "tcg")

    assert words_after(argv, "-serial") == ["chardev:console", "chardev:job"]
    assert words_after(argv, "-chardev") == ["file,id=console,path=/console.log", "stdio,id=job,signal=off"]


def test_systemd_is_the_first_process_unless_none_is_asked_for() -> None:
    assert "init=" not in words_after(command(machine(), "tcg"), "-append")[0]
    assert "init=/usr/local/sbin/least-init" in words_after(command(machine(init="none"), "tcg"), "-append")[0]


def test_the_first_process_of_a_machine_without_systemd_is_among_the_files() -> None:
    assert os.access(guest.FILES / "usr/local/sbin/least-init", os.X_OK)


def test_what_a_machine_prints_is_passed_on() -> None:
    said = bytearray()

    live(PRINTS, Deadline(30), said.extend)

    assert said == b"one\ntwo\n"


def test_a_machine_that_cannot_be_started_says_so() -> None:
    with pytest.raises(VmFailed, match="QEMU ended with 7"):
        live(["sh", "-c", "exit 7"], Deadline(30), bytearray().extend)


def test_a_machine_that_takes_too_long_is_ended() -> None:
    said = bytearray()

    with pytest.raises(VmFailed, match=r"not done within 0\.0"):
        live(STAYS, Deadline(1), said.extend)

    assert not Path(f"/proc/{int(said)}").exists()


def test_a_machine_ends_when_we_are_interrupted() -> None:
    said = bytearray()

    def interrupted(piece: bytes) -> None:
        said.extend(piece)
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        live(STAYS, Deadline(30), interrupted)

    assert not Path(f"/proc/{int(said)}").exists()
    assert time.monotonic() - began < 20


def test_a_missing_program_names_the_way_to_get_it() -> None:
    with pytest.raises(VmFailed, match="no-such-program is not installed: run `ci/install-host-packages vm`"):
        call(["no-such-program"])


def test_words_that_are_not_ours_go_to_the_run_as_they_are() -> None:
    options, rest = vm.arguments(["--into", "/x", "--init", "none", "-k", "prepare and not slices", "--tier", "e2e"])

    assert (options.into, options.init) == (Path("/x"), "none")
    assert rest == ["-k", "prepare and not slices", "--tier", "e2e"]


def test_another_kubernetes_is_packed_and_run() -> None:
    options, rest = vm.arguments(["--into", "/x", "--kubernetes", "1.36", "-n", "2"])

    assert options.kubernetes == "1.36"
    assert rest == ["--kubernetes", "1.36", "-n", "2"]


def test_the_disk_gets_the_whole_entries_of_what_is_used_and_no_others(tmp_path: Path) -> None:
    for name in ("binaries/etcd/3/etcd", "binaries/etcd/3/entry.json", "binaries/etcd/2/etcd", "images/driver-1/content.tar",
                 "images/driver-1/entry.json", "images/driver-2/content.tar", "images/packages.json"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)

    found = job.cached(tmp_path, [tmp_path / "binaries/etcd/3/etcd", tmp_path / "images/driver-1/content.tar"])

    assert found == {
        f"cache/{name}": tmp_path / name
        for name in ("binaries/etcd/3/etcd", "binaries/etcd/3/entry.json", "images/driver-1/content.tar",
                     "images/driver-1/entry.json", "images/packages.json")
    }  # fmt: skip


def test_a_program_outside_the_cache_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VmFailed, match="/usr/bin/runc is not in the cache"):
        job.cached(tmp_path, [Path("/usr/bin/runc")])


def test_files_are_put_onto_the_disk_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("content")

    job.link_or_copy({"a/b": tmp_path / "source"}, tmp_path / "disk")

    assert (tmp_path / "disk/a/b").read_text() == "content"


@pytest.mark.parametrize("code", [0, 1, 4, 137])
def test_the_exit_code_comes_back_exactly(tmp_path: Path, code: int) -> None:
    results = tmp_path / "results"
    (results / "report").mkdir(parents=True)
    (results / "report/report.yaml").write_text("kind: DriverConformanceReport\n")
    (results / "status").write_text(f"exit {code}\n")
    disk = make_disk(tmp_path / "result.img", "1M")
    with disk.open("r+b") as raw, tarfile.open(fileobj=raw, mode="w") as tar:
        tar.add(results, ".")

    came_back = job.outcome(disk, tmp_path / "here")

    assert came_back.code == code
    assert (came_back.report / "report.yaml").read_text() == "kind: DriverConformanceReport\n"


def test_a_machine_that_wrote_no_result_did_not_judge(tmp_path: Path) -> None:
    with pytest.raises(VmFailed, match="without having come to the end"):
        job.outcome(make_disk(tmp_path / "result.img", "1M"), tmp_path / "here")


@pytest.mark.parametrize("status", ["", "exit \n", "exit 1", "exit 1000\n", "exit 0\nexit 1\n"])
def test_half_a_status_is_none(status: str) -> None:
    with pytest.raises(VmFailed):
        job.code_in(status)


def test_the_guest_gets_its_job_and_no_login_prompt_on_its_console(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()

    guest.furnish(tmp_path)

    units = tmp_path / "etc/systemd/system"
    assert (units / "multi-user.target.wants/dra-testbed-job.service").readlink() == Path(
        "/etc/systemd/system/dra-testbed-job.service"
    )
    assert (units / "dra-testbed-job.service").exists()
    assert (units / "serial-getty@ttyS0.service").readlink() == Path("/dev/null")
    assert (tmp_path / "job").is_dir()


def test_another_file_in_the_guest_is_another_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = guest.key()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/motd").write_text("hello\n")
    monkeypatch.setattr(guest, "FILES", tmp_path)

    assert guest.key() != before
    assert guest.key() == guest.key()


def test_a_cached_guest_is_taken_as_it_is(tmp_path: Path) -> None:
    place = tmp_path / f"base-{guest.key()}"
    place.mkdir()

    assert guest.base(tmp_path, Deadline(1)) == place


def test_what_a_killed_maker_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".part/root").mkdir(parents=True)

    with guest.alone(tmp_path):
        assert not (tmp_path / ".part").exists()


def test_the_error_ends_with_the_console(tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    console.write_text("".join(f"line {n}\n" for n in range(30)))

    assert vm.last_words(console, 2) == f"the end of {console}:\n  line 28\n  line 29"
    assert vm.last_words(tmp_path / "none") == f"the end of {tmp_path / 'none'}:"

"""The pure parts of `tox -e vm`. Only `tox -e vm` runs a machine."""

from __future__ import annotations

import os
import re
import tarfile
import time
from pathlib import Path

import pytest

from ci.vm import __main__ as vm
from ci.vm import guest, job
from ci.vm.machine import Deadline, Machine, VmFailed, call, command, make_disk, prints_anything, run_until_off

PRINTS = ["sh", "-c", "echo one; echo two"]
STAYS = ["sh", "-c", "echo $$; exec sleep 60"]


def machine(**changes: str) -> Machine:
    return Machine(Path("/boot"), Path("/job.img"), Path("/result.img"), Path("/console.log"), **changes)  # type: ignore[arg-type] # strings only


def words_after(argv: list[str], flag: str) -> list[str]:
    return [argv[place + 1] for place, word in enumerate(argv) if word == flag]


def test_a_machine_has_no_network() -> None:
    assert words_after(command(machine(), "tcg"), "-nic") == ["none"]


def test_a_machine_is_killed_when_its_parent_ends() -> None:
    assert command(machine(), "tcg")[:4] == ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"]


def test_only_the_disk_for_results_keeps_changes() -> None:
    disks = words_after(command(machine(), "tcg"), "-drive")

    assert [re.findall(r"snapshot=on|file=[^,]+", disk) for disk in disks] == [
        ["file=/boot/root.img", "snapshot=on"],
        ["file=/job.img", "snapshot=on"],
        ["file=/result.img"],
    ]


@pytest.mark.parametrize(("accel", "argument"), [("kvm", "kvm"), ("tcg", "tcg,thread=multi")])
def test_an_emulated_machine_uses_all_processors_too(accel: str, argument: str) -> None:
    assert words_after(command(machine(), accel), "-accel") == [argument]


@pytest.mark.parametrize(
    ("script", "works"), [("echo Linux; exec sleep 60", True), ("exit 1", False), ("exec sleep 60", False)]
)
def test_kvm_works_only_if_a_kernel_prints_something(script: str, works: bool) -> None:
    began = time.monotonic()

    assert prints_anything(["sh", "-c", script], 5 if works else 0.3) is works
    assert time.monotonic() - began < 20


def test_the_console_and_the_job_have_their_own_ports() -> None:
    argv = command(machine(), "tcg")

    assert words_after(argv, "-serial") == ["chardev:console", "chardev:job"]
    assert words_after(argv, "-chardev") == ["file,id=console,path=/console.log", "stdio,id=job,signal=off"]


def test_init_is_systemd_unless_none_is_requested() -> None:
    assert "init=" not in words_after(command(machine(), "tcg"), "-append")[0]
    assert "init=/usr/local/sbin/least-init" in words_after(command(machine(init="none"), "tcg"), "-append")[0]


def test_the_init_of_a_machine_without_systemd_is_executable() -> None:
    assert os.access(guest.FILES / "usr/local/sbin/least-init", os.X_OK)


def test_the_output_of_a_machine_is_forwarded() -> None:
    output = bytearray()

    run_until_off(PRINTS, Deadline(30), output.extend)

    assert output == b"one\ntwo\n"


def test_a_failure_of_qemu_is_reported() -> None:
    with pytest.raises(VmFailed, match="QEMU exited with 7"):
        run_until_off(["sh", "-c", "exit 7"], Deadline(30), bytearray().extend)


def test_a_machine_is_killed_at_the_deadline() -> None:
    output = bytearray()

    with pytest.raises(VmFailed, match=r"did not finish within 0\.0"):
        run_until_off(STAYS, Deadline(1), output.extend)

    assert not Path(f"/proc/{int(output)}").exists()


def test_a_machine_is_killed_on_an_interrupt() -> None:
    output = bytearray()

    def interrupted(piece: bytes) -> None:
        output.extend(piece)
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_until_off(STAYS, Deadline(30), interrupted)

    assert not Path(f"/proc/{int(output)}").exists()
    assert time.monotonic() - began < 20


def test_the_error_for_a_missing_program_says_how_to_install_it() -> None:
    with pytest.raises(VmFailed, match="no-such-program is not installed: run `ci/install-host-packages vm`"):
        call(["no-such-program"])


def test_unknown_arguments_are_passed_to_the_run() -> None:
    options, rest = vm.arguments(["--into", "/x", "--init", "none", "-k", "prepare and not slices", "--tier", "e2e"])

    assert (options.into, options.init) == (Path("/x"), "none")
    assert rest == ["-k", "prepare and not slices", "--tier", "e2e"]


def test_another_kubernetes_version_is_packed_and_run() -> None:
    options, rest = vm.arguments(["--into", "/x", "--kubernetes", "1.36", "-n", "2"])

    assert options.kubernetes == "1.36"
    assert rest == ["--kubernetes", "1.36", "-n", "2"]


def test_the_disk_gets_the_complete_cache_entries_of_the_used_files(tmp_path: Path) -> None:
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


def test_files_are_put_on_the_disk_by_name(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("content")

    job.link_or_copy({"a/b": tmp_path / "source"}, tmp_path / "disk")

    assert (tmp_path / "disk/a/b").read_text() == "content"


@pytest.mark.parametrize("code", [0, 1, 4, 137])
def test_the_exit_code_of_the_run_is_returned(tmp_path: Path, code: int) -> None:
    results = tmp_path / "results"
    (results / "report").mkdir(parents=True)
    (results / "report/report.yaml").write_text("kind: DriverConformanceReport\n")
    (results / "status").write_text(f"exit {code}\n")
    disk = make_disk(tmp_path / "result.img", "1M")
    with disk.open("r+b") as raw, tarfile.open(fileobj=raw, mode="w") as tar:
        tar.add(results, ".")

    outcome = job.outcome(disk, tmp_path / "here")

    assert outcome.code == code
    assert (outcome.report / "report.yaml").read_text() == "kind: DriverConformanceReport\n"


def test_a_machine_without_results_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(VmFailed, match="switched off before"):
        job.outcome(make_disk(tmp_path / "result.img", "1M"), tmp_path / "here")


@pytest.mark.parametrize("status", ["", "exit \n", "exit 1", "exit 1000\n", "exit 0\nexit 1\n"])
def test_a_malformed_status_is_a_failure(status: str) -> None:
    with pytest.raises(VmFailed):
        job.code_in(status)


def test_the_guest_gets_its_job_and_no_login_prompt_on_its_console(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()

    guest.add_files(tmp_path)

    units = tmp_path / "etc/systemd/system"
    assert (units / "multi-user.target.wants/dra-testbed-job.service").readlink() == Path(
        "/etc/systemd/system/dra-testbed-job.service"
    )
    assert (units / "dra-testbed-job.service").exists()
    assert (units / "serial-getty@ttyS0.service").readlink() == Path("/dev/null")
    assert (tmp_path / "job").is_dir()


def test_the_key_of_a_guest_covers_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = guest.key()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/motd").write_text("hello\n")
    monkeypatch.setattr(guest, "FILES", tmp_path)

    assert guest.key() != before
    assert guest.key() == guest.key()


def test_a_cached_guest_is_used(tmp_path: Path) -> None:
    place = tmp_path / f"base-{guest.key()}"
    place.mkdir()

    assert guest.base(tmp_path, Deadline(1)) == place


def test_the_partial_build_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".part/root").mkdir(parents=True)

    with guest.locked(tmp_path):
        assert not (tmp_path / ".part").exists()


def test_the_error_has_the_end_of_the_consoles_log(tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    console.write_text("".join(f"line {n}\n" for n in range(30)))

    assert vm.end_of_log(console, 2) == f"the end of {console}:\n  line 28\n  line 29"
    assert vm.end_of_log(tmp_path / "none") == f"the end of {tmp_path / 'none'}:"

"""Boot an ordinary Debian in a virtual machine and run `dra-testbed run` there; exit with its exit code. `tox -e vm` calls it.

python -m ci.vm --into FOLDER [--init systemd|none] [--kubernetes VERSION] [--minutes N] [--accel kvm|tcg] [arguments of `dra-testbed run`]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ci.vm import guest, job
from ci.vm.machine import INITS, Deadline, Machine, VmFailed, accelerator, call, command, make_disk, run_until_off
from testbed import folders
from testbed.errors import TestbedError

TOOLS = ("qemu-system-x86_64", "mmdebstrap", "mke2fs", "setpriv")
INSTALL = Path(__file__).parents[1] / "install-host-packages"
ENVIRONMENT_FAILED = 3


def arguments(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the command line; return our options and the arguments for `dra-testbed run`."""
    parser = argparse.ArgumentParser(
        prog="python -m ci.vm", allow_abbrev=False, description="Other arguments are passed to `dra-testbed run`."
    )
    parser.add_argument("--into", type=Path, required=True, help="folder for the report and the machine's logs")
    parser.add_argument("--init", choices=INITS, default="systemd", help="the machine's first process")
    parser.add_argument("--kubernetes", help="version; default: the newest")
    parser.add_argument(
        "--minutes",
        type=float,
        default=90,
        help="deadline for everything; without KVM, the suites take most of an hour",
    )
    parser.add_argument("--accel", choices=("kvm", "tcg"), help="default: what this host supports")
    options, rest = parser.parse_known_args(words)
    return options, [*(["--kubernetes", options.kubernetes] if options.kubernetes else []), *rest]


def main(words: Sequence[str]) -> int:
    """Return the exit code of `dra-testbed run` in the machine, or 3 if it did not finish there."""
    options, rest = arguments(words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    try:
        return run_in_machine(options, rest, Deadline(options.minutes * 60))
    except (VmFailed, TestbedError) as failed:
        print(f"error: {failed}", file=sys.stderr)
        return ENVIRONMENT_FAILED
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def run_in_machine(options: argparse.Namespace, words: Sequence[str], deadline: Deadline) -> int:
    """Build the disks, run the machine, and copy the results."""
    install_tools()
    logs = options.into / "guest"
    logs.mkdir(parents=True)
    boot = guest.base(folders.cache() / "vm", deadline)
    with tempfile.TemporaryDirectory(prefix="dra-testbed-vm-") as scratch:
        folder = Path(scratch)
        disk = job.pack(folder, options.kubernetes, words, deadline)
        result = make_disk(folder / "result.img", "1G")
        machine = Machine(boot, disk, result, logs / "console.log", options.init)
        run(machine, options.accel or accelerator(boot), logs / "output.log", deadline)
        results = job.outcome(result, folder / "results")
        for source, target in ((results.report, options.into), (results.failed, logs / "failed")):
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
    print(f"the run in the machine exited with {results.code}; report: {options.into}")
    return results.code


def install_tools() -> None:
    """Install missing programs. Raise VmFailed if that needs root."""
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")]
    if missing and os.geteuid() == 0:
        print(f"installing {', '.join(missing)}")
        call([INSTALL, "vm"])
    elif missing:
        raise VmFailed(f"not installed: {', '.join(missing)}; run `ci/install-host-packages vm` as root")


def run(machine: Machine, accel: str, log: Path, deadline: Deadline) -> None:
    """Run the machine until it switches itself off. A failure has the end of the console's log."""
    how = {"kvm": "with KVM", "tcg": "emulated (slow)"}[accel]
    print(f"booting {machine.boot.name}, init {machine.init}, {how}; console: {machine.console}", flush=True)
    began = time.monotonic()
    with log.open("wb") as copy:

        def forward(piece: bytes) -> None:
            copy.write(piece)
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()

        try:
            run_until_off(command(machine, accel), deadline, forward)
        except VmFailed as failed:
            raise VmFailed(f"{failed}; {end_of_log(machine.console)}") from failed
    print(f"the machine ran for {time.monotonic() - began:.0f} s")


def end_of_log(console: Path, lines: int = 15) -> str:
    """Return the end of the console's log."""
    content = console.read_text(errors="replace").splitlines() if console.exists() else []
    return "\n  ".join([f"the end of {console}:", *content[-lines:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

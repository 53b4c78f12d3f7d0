"""Boot an ordinary Debian in a virtual machine and judge there. Called by `tox -e vm`; ends with the exit code of `dra-testbed run`.

python -m ci.vm --into FOLDER [--init systemd|none] [--kubernetes VERSION] [--minutes N] [--accel kvm|tcg] [words of `dra-testbed run`]
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
from ci.vm.machine import INITS, Deadline, Machine, VmFailed, accelerator, call, command, live, make_disk
from testbed import folders
from testbed.errors import TestbedError

TOOLS = ("qemu-system-x86_64", "mmdebstrap", "mke2fs", "setpriv")
INSTALL = Path(__file__).parents[1] / "install-host-packages"
ENVIRONMENT_FAILED = 3


def arguments(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our own options, and the words that go to `dra-testbed run` as they are."""
    parser = argparse.ArgumentParser(
        prog="python -m ci.vm", allow_abbrev=False, description="Other words go to `dra-testbed run`."
    )
    parser.add_argument("--into", type=Path, required=True, help="where the report and the machine's logs go")
    parser.add_argument("--init", choices=INITS, default="systemd", help="the machine's first process")
    parser.add_argument("--kubernetes", help="instead of the newest")
    parser.add_argument(
        "--minutes", type=float, default=90, help="for everything; emulated, the suites alone take most of an hour"
    )
    parser.add_argument("--accel", choices=("kvm", "tcg"), help="instead of what this host can do")
    options, rest = parser.parse_known_args(words)
    return options, [*(["--kubernetes", options.kubernetes] if options.kubernetes else []), *rest]


def main(words: Sequence[str]) -> int:
    """The exit code of `dra-testbed run` in the machine, or 3 when it did not come so far."""
    options, rest = arguments(words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    try:
        return judged(options, rest, Deadline(options.minutes * 60))
    except (VmFailed, TestbedError) as failed:
        print(f"error: {failed}", file=sys.stderr)
        return ENVIRONMENT_FAILED
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def judged(options: argparse.Namespace, words: Sequence[str], deadline: Deadline) -> int:
    """Make what is needed, boot, and bring the results home."""
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
        came_back = job.outcome(result, folder / "results")
        for source, target in ((came_back.report, options.into), (came_back.failed, logs / "failed")):
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
    print(f"the run in the machine ended with {came_back.code}; its report: {options.into}")
    return came_back.code


def install_tools() -> None:
    """What this host needs; installed where we may."""
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")]
    if missing and os.geteuid() == 0:
        print(f"installing {', '.join(missing)}")
        call([INSTALL, "vm"])
    elif missing:
        raise VmFailed(f"{', '.join(missing)} not installed: run `ci/install-host-packages vm` as root")


def run(machine: Machine, accel: str, log: Path, deadline: Deadline) -> None:
    """From power-on to power-off; when it ends badly, the console's last words come along."""
    how = {"kvm": "with the processor's help", "tcg": "emulated, which is slow"}[accel]
    print(f"booting {machine.boot.name}, init {machine.init}, {how}; console: {machine.console}", flush=True)
    began = time.monotonic()
    with log.open("wb") as copy:

        def say(piece: bytes) -> None:
            copy.write(piece)
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()

        try:
            live(command(machine, accel), deadline, say)
        except VmFailed as failed:
            raise VmFailed(f"{failed}; {last_words(machine.console)}") from failed
    print(f"the machine ran for {time.monotonic() - began:.0f} s")


def last_words(console: Path, lines: int = 15) -> str:
    """The end of the console's log."""
    said = console.read_text(errors="replace").splitlines() if console.exists() else []
    return "\n  ".join([f"the end of {console}:", *said[-lines:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

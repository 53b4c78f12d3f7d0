#!/usr/bin/env -S python3 -IS
"""An OCI runtime that removes from containers what this host's root lacks, and then executes runc.

On some hosts root lacks a capability (`CapBnd` in /proc/self/status). runc then refuses every privileged container, such as a kind node:
"unable to apply caps: operation not permitted". On these hosts only, a Docker engine uses this file instead of runc:

    dockerd --add-runtime dra-testbed=PATH_OF_THIS_FILE --default-runtime dra-testbed

`ci/docker/engine` does so for tests, and `doctor` recommends it to users. This file imports nothing of the testbed, because the host's
python3 runs it for each container and each `docker exec`. The real runc is the one on PATH, or that of DRA_TESTBED_RUNC.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

# The index of a capability in this list is its number in the kernel. Capabilities that are not in the list are not changed.
NAMES = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST "
    "NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE "
    "SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM "
    "BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"
)
CAPABILITIES = [f"CAP_{name}" for name in NAMES.split()]
GLOBAL_SWITCHES = {"debug", "systemd-cgroup", "help", "h", "version", "v"}
SWITCHES = {
    "create": {"no-pivot", "no-new-keyring"},
    "run": {"no-pivot", "no-new-keyring", "no-subreaper", "detach", "d", "keep"},
    "exec": {"tty", "t", "detach", "d", "no-new-privs", "ignore-paused"},
}


def missing_capabilities(status: str) -> set[str]:
    """Return the capabilities that no program started here can have, from the text of /proc/self/status."""
    bounding = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapBnd:"))
    return {name for number, name in enumerate(CAPABILITIES) if not bounding >> number & 1}


def leading_options(words: list[str], switches: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Return the leading options with their values, and the rest. All options but the switches take a value."""
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        name, equals, value = rest.pop(0).lstrip("-").partition("=")
        if not equals and name not in switches and rest:
            value = rest.pop(0)
        options[name] = value
    return options, rest


def file_to_fit(words: list[str]) -> Path | None:
    """Return the configuration file of the process that this command line of runc starts; None if it starts none."""
    _, rest = leading_options(words, GLOBAL_SWITCHES)
    command = rest[0] if rest else ""
    if command not in SWITCHES:
        return None
    options, _ = leading_options(rest[1:], SWITCHES[command])
    if command == "exec":
        process = options.get("process", options.get("p"))
        return Path(process) if process else None
    return Path(options.get("bundle", options.get("b", "."))) / "config.json"


def fit(process: dict[str, Any], missing: Collection[str], score: int) -> dict[str, Any]:
    """Return the process without the missing capabilities, and with an OOM score that the host permits (`score` is our own)."""
    fitted = dict(process)
    if process.get("capabilities"):
        fitted["capabilities"] = {
            kind: [name for name in names or () if name not in missing]
            for kind, names in process["capabilities"].items()
        }
    if "CAP_SYS_RESOURCE" in missing and process.get("oomScoreAdj", score) < score:
        fitted["oomScoreAdj"] = score  # only with that capability can a process lower its score
    return fitted


def rewrite(file: Path, content: dict[str, Any]) -> None:
    """Replace a file atomically, so that runc and other readers see the old or the new content."""
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.touch(mode=file.stat().st_mode & 0o777)
    new.write_text(json.dumps(content), encoding="utf-8")
    new.replace(file)


def fit_file(file: Path, missing: Collection[str]) -> None:
    """Fit the process in a file. Leave an unreadable file unchanged: runc reports the error."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    score = int(Path("/proc/self/oom_score_adj").read_text(encoding="utf-8"))
    process = content.get("process")  # of a bundle; the file of an exec is the process itself
    fitted = {**content, "process": fit(process, missing, score)} if process else fit(content, missing, score)
    if fitted != content:
        rewrite(file, fitted)


def main(words: list[str]) -> None:
    """Fit the configuration file, if there is one, and execute runc with the same arguments. Print nothing: stderr is the container's."""
    missing = missing_capabilities(Path("/proc/self/status").read_text(encoding="utf-8"))
    file = file_to_fit(words) if missing else None
    if file:
        fit_file(file, missing)
    runc = os.environ.get("DRA_TESTBED_RUNC") or "runc"
    try:
        os.execvp(runc, [runc, *words])  # noqa: S606 - that is the purpose of this file
    except OSError as refused:
        sys.exit(
            f"{sys.argv[0]}: cannot execute {runc}: {refused.strerror}. Install runc, or set DRA_TESTBED_RUNC to its path."
        )


if __name__ == "__main__":
    main(sys.argv[1:])

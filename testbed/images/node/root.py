"""Build the node image's lower layer with mmdebstrap: Debian with the packages that a kind node needs. Used by assemble.py.

Debian 12, because its systemd starts on hosts with cgroup v1 and v2; that of Debian 13 needs cgroup v2. The layer is the same for
every Kubernetes version, so it has its own entry in the cache.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from testbed import process
from testbed.errors import CommandFailed, TestbedError
from testbed.images import oci
from testbed.images.store import CacheEntry, Store, key_of
from testbed.progress import Step

RECIPE = 1  # increase it when the same packages give another layer
SUITE = "bookworm"

# This runc is used if the locked runc was built for a newer C library.
PACKAGES = (
    "systemd", "dbus", "runc", "iptables", "nftables", "conntrack", "ethtool", "iproute2", "util-linux", "mount", "kmod", "procps",
    "jq", "pigz", "ca-certificates", "hostname", "libseccomp2",
)  # fmt: skip
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_NOT_NEEDED = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")

# kind's Dockerfile removes the same systemd units, because they are for hosts and not for containers. Without the machine IDs of
# systemd and D-Bus each node generates its own. The list of mirrors may contain user names and passwords of this host.
_CLEAN_UP = """
set -eu
cd "$1"
rm -f lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service lib/systemd/system/multi-user.target.wants/* \\
  etc/systemd/system/*.wants/* lib/systemd/system/local-fs.target.wants/* lib/systemd/system/sockets.target.wants/*udev* \\
  lib/systemd/system/sockets.target.wants/*initctl* lib/systemd/system/basic.target.wants/*
echo ReadKMsg=no >>etc/systemd/journald.conf
ln -sf /usr/lib/systemd/systemd sbin/init
rm -f etc/machine-id var/lib/dbus/machine-id
rm -rf etc/apt/sources.list etc/apt/sources.list.d/* etc/apt/apt.conf.d/99mmdebstrap etc/dpkg/dpkg.cfg.d/99mmdebstrap \\
  var/lib/apt/lists/* var/cache/* var/log/*
"""


def key() -> str:
    """Return the cache key of the layer."""
    return key_of(["node root", RECIPE, oci.architecture(), SUITE, PACKAGES, _NOT_NEEDED, _CLEAN_UP])


def check_tools() -> None:
    """Raise TestbedError if the layer must be built and this host lacks a program for it. Called before anything slow."""
    if Store().find("debian", key()) is None:
        _check_tools()


def layer(step: Step) -> CacheEntry:
    """Return the layer from the cache, or build it."""

    def build(file: Path, scratch: Path) -> dict[str, str]:
        step.note(f"Debian {SUITE}")
        _check_tools()
        _run(_command(file, scratch), scratch, step)
        return {"digest": oci.Layer.of(file).digest, "suite": SUITE}

    return Store().get_or_build("debian", key(), step, build)


def unpack(layer: CacheEntry, into: Path) -> Path:
    """Unpack the layer into a new folder and return the folder. All files belong to the current user."""
    into.mkdir()
    process.run(
        process.kill_with_parent(["tar", "--extract", "--no-same-owner", "--file", layer.file, "--directory", into]),
        timeout=300,
    )
    return into


def _check_tools() -> None:
    if shutil.which("mmdebstrap") is None:
        raise TestbedError("cannot build a node image: mmdebstrap was not found", hint="apt install mmdebstrap")
    if not _KEYRING.exists():
        raise TestbedError(
            f"cannot build a node image: the keys of Debian's packages are missing ({_KEYRING})",
            hint="apt install debian-archive-keyring",
        )


def _command(target: Path, scratch: Path) -> list[str]:
    options = [
        f"--mode={'root' if _is_root() else 'unshare'}", "--variant=minbase", "--format=tar", f"--include={','.join(PACKAGES)}",
        "--aptopt=APT::Install-Recommends \"false\"", *(f"--aptopt={line}" for line in _apt_settings()),
        "--dpkgopt=force-unsafe-io", *(f"--dpkgopt=path-exclude={pattern}" for pattern in _NOT_NEEDED),
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", f"--customize-hook={_CLEAN_UP}", "--skip=output/dev,output/mknod",
    ]  # fmt: skip
    # As root, its processes and mounts are in separate namespaces, which the kernel removes if this process is killed.
    unshare = ["unshare", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child=KILL"] if _is_root() else []
    return process.kill_with_parent([*unshare, "mmdebstrap", "--verbose", *options, SUITE, target, *_mirrors(scratch)])


def _run(command: list[str], scratch: Path, step: Step) -> None:
    # Without root, mmdebstrap works as another user of a user namespace, who has no access to the cache folder.
    temporary = {"TMPDIR": str(scratch)} if _is_root() else {}
    env = {**os.environ, "SOURCE_DATE_EPOCH": "0", "LC_ALL": "C.UTF-8", **temporary}
    try:
        with process.stream(command, env=env) as lines:
            for line in lines:
                if match := re.match(r"(?:I: (.*?)(?:\.\.\.)?|Setting up (\S+) .*)$", line):
                    step.note(f"Debian {SUITE}: {match[1] or match[2]}")
    except CommandFailed as failed:
        raise TestbedError(
            f"mmdebstrap could not install Debian {SUITE}: {_reason(failed.output)}", hint=_hint(failed.output)
        ) from failed


def _mirrors(scratch: Path) -> list[Path]:
    """Return a file with the host's mirrors if the host has the same Debian release; otherwise nothing, for mmdebstrap's default."""
    if not _host_has_same_release():
        return []
    # Only Debian's own repositories: others may have a suite of the same name, but mmdebstrap does not have their keys.
    form = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)"
    output = process.run(["apt-get", "indextargets", "--format", form, "Identifier: Packages"]).stdout
    found = re.findall(rf"^(\S+ {SUITE}(?:-updates|-security)? main) Debian$", output, re.MULTILINE)
    lines = [f"deb {line}" for line in dict.fromkeys(found)]
    if not lines:
        return []
    sources = scratch / "sources.list"
    sources.write_text("\n".join(lines) + "\n")
    return [sources]


def _apt_settings() -> Iterator[str]:
    """Yield the host's settings for access to mirrors (proxies, certificates), which mmdebstrap does not read by itself."""
    if shutil.which("apt-config") is None:
        return
    output = process.run(["apt-config", "dump", "--format", '%f "%v";%n', "Acquire"]).stdout
    for line in output.splitlines():
        if re.match(r'Acquire::(https?::\S+|Check-Valid-Until|Retries|ForceIPv[46]) "[^"]+";$', line):
            yield line


def _host_has_same_release() -> bool:
    try:
        release = Path("/etc/os-release").read_text()
    except OSError:
        return False
    return re.search(rf"^VERSION_CODENAME=\"?{SUITE}\"?$", release, re.MULTILINE) is not None


def _is_root() -> bool:
    return os.geteuid() == 0


def _reason(output: str) -> str:
    """Return the first error. apt writes the reason into the line after it."""
    found = re.search(r"^(?:E: .*|Err:\S+ (.*)\n\s+(.*)|(?:newuidmap|unshare|setpriv): .*)$", output, re.MULTILINE)
    if found is None:
        return next(iter(output.strip().splitlines()[-1:]), "no output")
    return f"{found[1]}: {found[2]}" if found[1] else found[0]


def _hint(output: str) -> str:
    if "No space left" in output:
        return "free disk space, or set DRA_TESTBED_CACHE to a folder on another disk"
    if re.search(r"resolve|connect|Failed to fetch|timed out|Temporary failure", output):
        return "check that `apt-get update` works on this host"
    if not _is_root():
        return "run as root, or enable user namespaces for this user (apt install uidmap, a range in /etc/subuid)"
    return "check that `apt-get update` works on this host, and that root may mount"

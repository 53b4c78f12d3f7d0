"""The node image's lower layer: an ordinary Debian with the packages that a kind node needs, made by mmdebstrap. For assemble.py.

Debian 12, because the systemd of Debian 13 no longer starts on a host with cgroup v1, and on both kinds of host this one does.
The layer is the same for every Kubernetes version, so it is kept in the cache on its own.
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

RECIPE = 1  # count it up when this module makes something else of the same packages
SUITE = "bookworm"

# runc stands here for a locked one that was built on a host with a newer C library.
PACKAGES = (
    "systemd", "dbus", "runc", "iptables", "nftables", "conntrack", "ethtool", "iproute2", "util-linux", "mount", "kmod", "procps",
    "jq", "pigz", "ca-certificates", "hostname", "libseccomp2",
)  # fmt: skip
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_NOT_NEEDED = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")

# The first part is what kind's Dockerfile removes of Debian's systemd, which in a container would start what is the host's.
# Each node makes a machine id of its own, unless D-Bus has one. The list of mirrors may hold names and passwords of the builder's.
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
    """Of the layer."""
    return key_of(["node root", RECIPE, oci.architecture(), SUITE, PACKAGES, _NOT_NEEDED, _CLEAN_UP])


def layer(step: Step) -> CacheEntry:
    """The layer, from the cache or made now."""

    def build(file: Path, scratch: Path) -> dict[str, str]:
        step.note(f"Debian {SUITE}")
        _check_tools()
        _run(_command(file, scratch), scratch, step)
        return {"digest": oci.Layer.of(file).digest, "suite": SUITE}

    return Store().get_or_build("debian", key(), step, build)


def unpack(layer: CacheEntry, into: Path) -> Path:
    """The layer's content in a folder, everything in it ours; the folder is returned."""
    into.mkdir()
    process.run(
        process.kill_with_parent(["tar", "--extract", "--no-same-owner", "--file", layer.file, "--directory", into]),
        timeout=300,
    )
    return into


def _check_tools() -> None:
    if shutil.which("mmdebstrap") is None:
        raise TestbedError("a node image is made with mmdebstrap, and it is not here", hint="apt install mmdebstrap")
    if not _KEYRING.exists():
        raise TestbedError(
            f"the keys of Debian's packages are not here ({_KEYRING})", hint="apt install debian-archive-keyring"
        )


def _command(target: Path, scratch: Path) -> list[str]:
    options = [
        f"--mode={'root' if _is_root() else 'unshare'}", "--variant=minbase", "--format=tar", f"--include={','.join(PACKAGES)}",
        "--aptopt=APT::Install-Recommends \"false\"", *(f"--aptopt={line}" for line in _apt_settings()),
        "--dpkgopt=force-unsafe-io", *(f"--dpkgopt=path-exclude={pattern}" for pattern in _NOT_NEEDED),
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", f"--customize-hook={_CLEAN_UP}", "--skip=output/dev,output/mknod",
    ]  # fmt: skip
    # As root, what it starts and what it mounts are in namespaces of its own, and go with it when we are killed.
    own = ["unshare", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child=KILL"] if _is_root() else []
    return process.kill_with_parent([*own, "mmdebstrap", "--verbose", *options, SUITE, target, *_mirrors(scratch)])


def _run(command: list[str], scratch: Path, step: Step) -> None:
    # Without root its folder is another user's inside, who could not come through the cache's.
    place = {"TMPDIR": str(scratch)} if _is_root() else {}
    env = {**os.environ, "SOURCE_DATE_EPOCH": "0", "LC_ALL": "C.UTF-8", **place}
    try:
        with process.stream(command, env=env) as lines:
            for line in lines:
                if told := re.match(r"(?:I: (.*?)(?:\.\.\.)?|Setting up (\S+) .*)$", line):
                    step.note(f"Debian {SUITE}: {told[1] or told[2]}")
    except CommandFailed as failed:
        raise TestbedError(
            f"mmdebstrap could not make a Debian {SUITE}: {_reason(failed.output)}", hint=_hint(failed.output)
        ) from failed


def _mirrors(scratch: Path) -> list[Path]:
    """Where packages come from: on this Debian from where the host gets its own, elsewhere mmdebstrap knows."""
    if not _host_has_same_release():
        return []
    # Of Debian's own only: another repository may call its suite the same, and mmdebstrap has not its key.
    form = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)"
    said = process.run(["apt-get", "indextargets", "--format", form, "Identifier: Packages"]).stdout
    found = re.findall(rf"^(\S+ {SUITE}(?:-updates|-security)? main) Debian$", said, re.MULTILINE)
    lines = [f"deb {line}" for line in dict.fromkeys(found)]
    if not lines:
        return []
    sources = scratch / "sources.list"
    sources.write_text("\n".join(lines) + "\n")
    return [sources]


def _apt_settings() -> Iterator[str]:
    """How the host's apt reaches mirrors (proxies, certificates): mmdebstrap's asks only the settings that it is given."""
    if shutil.which("apt-config") is None:
        return
    said = process.run(["apt-config", "dump", "--format", '%f "%v";%n', "Acquire"]).stdout
    for line in said.splitlines():
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
    """The first error; apt puts the reason into the line after it."""
    found = re.search(r"^(?:E: .*|Err:\S+ (.*)\n\s+(.*)|(?:newuidmap|unshare|setpriv): .*)$", output, re.MULTILINE)
    if found is None:
        return next(iter(output.strip().splitlines()[-1:]), "it said nothing")
    return f"{found[1]}: {found[2]}" if found[1] else found[0]


def _hint(output: str) -> str:
    if "No space left" in output:
        return "make room on the disk, or set DRA_TESTBED_CACHE to a place that has it"
    if re.search(r"resolve|connect|Failed to fetch|timed out|Temporary failure", output):
        return "see that `apt-get update` works on this host"
    if not _is_root():
        return "run it as root, or let this user have user namespaces (apt install uidmap, a range in /etc/subuid)"
    return "see that `apt-get update` works on this host, and that root may mount"

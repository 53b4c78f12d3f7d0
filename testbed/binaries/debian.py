"""Fetches and unpacks packages of the Debian or Ubuntu that this runs on, without installing them.

Used by `sources` (runc) and by images (busybox, Python).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from testbed import process
from testbed.errors import CommandFailed, TestbedError

# The user _apt could not write into our folder. Signatures are verified nevertheless.
_NO_SANDBOX = ("-o", "APT::Sandbox::User=root")
_NOT_IN_INDEX = (
    "unable to locate package",
    "no installation candidate",
    "no packages found",
    "can't find a source",
    "404",
)


def fetch_package(name: str, into: Path) -> Path:
    """Unpack one package into a folder, and return the folder."""
    fetch_packages([name], into)
    return into


def fetch_packages(names: Sequence[str], into: Path) -> dict[str, str]:
    """Unpack packages, without their dependencies, into one folder. Return their versions by name."""
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into, prefix=".packages-") as folder:
        files = download_packages(names, Path(folder))
        for file in files.values():
            process.run(["dpkg-deb", "-x", file, into], timeout=120)
        return {name: _version(file) for name, file in files.items()}


def download_packages(names: Sequence[str], into: Path) -> dict[str, Path]:
    """Download packages into a folder. Return their files by name."""
    wanted = list(dict.fromkeys(names))
    _with_fresh_index(["apt-get", "download", *_NO_SANDBOX, *wanted], cwd=into)
    files = {file.name.split("_")[0]: file for file in sorted(into.glob("*.deb"))}
    missing = [name for name in wanted if name.split(":")[0].split("=")[0] not in files]
    if missing:
        raise TestbedError(
            f"apt-get downloaded no file of {', '.join(missing)}",
            hint="name real packages, not virtual ones",
        )
    return {name: files[name.split(":")[0].split("=")[0]] for name in wanted}


def with_dependencies(names: Sequence[str]) -> list[str]:
    """Return the packages with all dependencies, sorted; of alternatives the first one that exists."""
    flags = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
    output = _with_fresh_index(["apt-cache", "depends", "--recurse", *flags, *names])
    needs = dict(_needs(output))
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(needs.get(name, ()))
    return sorted(found)


def _needs(output: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each package with its dependencies, from the output of apt-cache depends.

    A line without indentation names a package. `Depends: name` is a dependency; after `|Depends:` the next line is an alternative;
    `<name>` is a virtual package, and the further indented lines below it name its providers.
    """
    for block in re.split(r"\n(?=\S)", output.strip("\n")):
        package, _, rest = block.partition("\n")
        needs: list[str] = []
        for group in re.findall(
            r"(?:^ \|(?:Pre)?Depends: .*\n(?:^    .*\n)*)*^  (?:Pre)?Depends: .*\n?(?:^    .*\n?)*",
            rest,
            re.M,
        ):
            real = re.findall(r"Depends: ([^<\s]+)\s*$|^    (\S+)\s*$", group, re.M)
            if real:
                needs.append(next(word for word in real[0] if word))
        yield package.strip(), needs


def _with_fresh_index(argv: Sequence[str], cwd: Path | None = None) -> str:
    """Run an apt command and return its output. If it does not find a package, root updates the package lists and tries again."""
    if shutil.which(argv[0]) is None:
        raise TestbedError(
            f"{argv[0]} was not found on this host",
            hint="use a Debian or Ubuntu host, or provide the programs with --binaries-from FOLDER",
        )
    try:
        return _apt(argv, cwd)
    except CommandFailed as failed:
        if not any(sign in failed.output.lower() for sign in _NOT_IN_INDEX):
            raise _apt_error(failed) from failed
        if os.geteuid() != 0:
            raise TestbedError(f"apt did not find it: {_last_line(failed)}", hint="sudo apt-get update") from failed
    try:
        _apt(["apt-get", "update"], None)
        return _apt(argv, cwd)
    except CommandFailed as failed:
        raise _apt_error(failed) from failed


def _apt(argv: Sequence[str], cwd: Path | None) -> str:
    return process.run(argv, cwd=cwd, timeout=300, env={**os.environ, "LC_ALL": "C"}).stdout


def _apt_error(failed: CommandFailed) -> TestbedError:
    command = " ".join(failed.argv[:2])
    return TestbedError(
        f"{command} failed: {_last_line(failed)}", hint="check that `apt-get update` works on this host"
    )


def _last_line(failed: CommandFailed) -> str:
    return next((line for line in reversed(failed.output.strip().splitlines()) if line.strip()), failed.status)


def _version(file: Path) -> str:
    return process.run(["dpkg-deb", "-f", file, "Version"]).stdout.strip()

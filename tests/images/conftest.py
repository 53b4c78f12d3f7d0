"""Fakes for the tests of images: an empty cache, a busybox that is only an ELF header, a distribution, and a pip shell script."""

from __future__ import annotations

import json
import struct
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testbed import folders
from testbed.binaries import debian
from testbed.errors import TestbedError
from testbed.images import busybox, python_base, wheels
from testbed.images.oci import architecture
from testbed.progress import Silent

LOADER = f"""#!/bin/sh
unset PYTHONHOME
shift 3
exec {sys.executable} "$@"
"""


@pytest.fixture
def loader() -> str:
    """Return the loader of a fake image, which starts the Python of the tests."""
    return LOADER


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache/images"


@pytest.fixture
def progress() -> Silent:
    return Silent()


@pytest.fixture
def elf() -> Callable[..., bytes]:
    """Return a function that makes the start of an ELF program with one program header."""

    def make(*, needs_loader: bool = False, machine: int = {"amd64": 62, "arm64": 183}[architecture()]) -> bytes:
        ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        head = ident + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        loader = b"/lib64/ld-linux.so.2\0" if needs_loader else b""
        segment = struct.pack("<IIQQQQQQ", 3 if needs_loader else 1, 4, 120, 0, 0, len(loader), len(loader), 1)
        return head + segment + loader + b"code"

    return make


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Return a function that writes a shell script to the first folder on PATH."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    monkeypatch.setenv("PATH", f"{bin_folder}:/usr/local/bin:/usr/bin:/bin")

    def put(name: str, body: str) -> Path:
        program = bin_folder / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        return program

    return put


@pytest.fixture
def packaged_busybox(monkeypatch: pytest.MonkeyPatch, elf: Callable[..., bytes]) -> list[str]:
    """Fake a distribution with a busybox of three applets; return the packages that were fetched."""
    fetched: list[str] = []

    def fetch(name: str, into: Path) -> Path:
        fetched.append(name)
        (into / "bin").mkdir(parents=True)
        (into / "bin/busybox").write_bytes(elf())
        return into

    monkeypatch.setattr(debian, "fetch_package", fetch)
    monkeypatch.setattr(busybox, "applets", lambda program: ["cat", "sh", "sleep"])
    return fetched


@dataclass
class Distribution:
    """The packages of a fake apt, and the packages that were fetched."""

    versions: dict[str, str] = field(
        default_factory=lambda: {
            "libc6": "2.40-1",
            "libpython3.13-stdlib": "3.13.5-2",
            "python3.13-minimal": "3.13.5-2",
        }
    )
    served: set[str] | None = None
    fetched: list[Sequence[str]] = field(default_factory=list)

    def with_dependencies(self, names: Sequence[str]) -> list[str]:
        return sorted({*self.versions, "perl-base"})

    def fetch(self, pins: Sequence[str], into: Path) -> dict[str, str]:
        self.fetched.append(tuple(pins))
        if self.served is not None and not self.served.issuperset(pins):
            raise TestbedError("apt-get download failed: not found")
        for path, text in self.files().items():
            (into / path).parent.mkdir(parents=True, exist_ok=True)
            (into / path).write_text(text)
            (into / path).chmod(0o755 if "bin/" in path or "ld-linux" in path else 0o644)
        (into / "lib64").mkdir()
        (into / "lib64/ld-linux-x.so.2").symlink_to("/lib/x-linux-gnu/ld-linux-x.so.2")
        return {}

    def files(self) -> dict[str, str]:
        python = "usr/lib/python3.13"
        return {
            "lib/x-linux-gnu/ld-linux-x.so.2": LOADER,
            "usr/lib/x-linux-gnu/libc.so.6": "libc",
            "usr/lib/x-linux-gnu/gconv/UTF-16.so": "dropped",
            "usr/bin/python3.13": "the interpreter",
            "usr/bin/pdb3.13": "dropped",
            "usr/share/doc/libc6/copyright": "dropped",
            "usr/sbin/ldconfig": "dropped",
            "etc/ld.so.conf": "dropped",
            f"{python}/os.py": "NAME = 'os'\n",
            f"{python}/test/test_os.py": "dropped",
            f"{python}/idlelib/idle.py": "dropped",
            f"{python}/lib-dynload/_ssl.x.so": "kept",
            f"{python}/lib-dynload/_sqlite3.x.so": "dropped",
        }


@pytest.fixture
def distribution(monkeypatch: pytest.MonkeyPatch) -> Distribution:
    fake = Distribution()
    monkeypatch.setattr(debian, "with_dependencies", fake.with_dependencies)
    monkeypatch.setattr(debian, "fetch_packages", fake.fetch)
    monkeypatch.setattr(python_base, "_candidates", lambda names: {name: fake.versions[name] for name in names})
    return fake


@dataclass
class Pip:
    """A pip that always downloads the same wheels, and the log of its calls."""

    log: Path

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def pip(tmp_path: Path, script: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch) -> Pip:
    wheel, log = tmp_path / "grpcio-1.0-py3-none-any.whl", tmp_path / "pip.log"
    with zipfile.ZipFile(wheel, "w") as content:
        for name in (
            "grpc/__init__.py",
            "grpc/types.pyi",
            "google/__init__.py",
            "google/protobuf/__init__.py",
            "urllib3.py",
        ):
            content.writestr(name, "")
        content.writestr("yaml/__init__.py", "")
        content.writestr("yaml/_yaml.x.so", "dropped")
    put = f'echo "$@" >> {log}\nwhile [ "$1" != --dest ]; do shift; done\nmkdir -p "$2"\ncp {wheel} "$2"'
    program = script("pip", put)
    monkeypatch.setattr(wheels, "_pip", lambda: [str(program)])
    return Pip(log)


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fake an installation of our two packages, with one line in each module."""
    root = tmp_path / "installed"
    for path in (
        "fake_driver/__init__.py",
        "testbed/__init__.py",
        "testbed/kubelet/__init__.py",
        "testbed/kubelet/stubs/dra.py",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"PATH = {path!r}\n")
    monkeypatch.setattr(folders, "packages", lambda: root)
    return root


@dataclass(frozen=True)
class ArchiveContents:
    """The files in an archive of an image."""

    files: Mapping[str, bytes]

    def json(self, path: str) -> Any:
        return json.loads(self.files[path])

    def blob(self, digest: str) -> bytes:
        return self.files["blobs/" + digest.replace(":", "/")]

    @property
    def manifest(self) -> Any:
        return json.loads(self.blob(self.json("index.json")["manifests"][0]["digest"]))

    @property
    def config(self) -> Any:
        return json.loads(self.blob(self.manifest["config"]["digest"]))

    def layer(self, number: int, folder: Path) -> dict[str, tarfile.TarInfo]:
        file = folder / f"layer-{number}.tar"
        file.write_bytes(self.blob(self.manifest["layers"][number]["digest"]))
        with tarfile.open(file) as tar:
            return {member.name: member for member in tar.getmembers()}


@pytest.fixture
def read_archive() -> Callable[[Path], ArchiveContents]:
    def read(archive: Path) -> ArchiveContents:
        files: dict[str, bytes] = {}
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                content = tar.extractfile(member)
                if content:
                    files[member.name] = content.read()
        return ArchiveContents(files)

    return read

"""The driver image's lowest layer: Python and its libraries, from the distribution's packages, and nothing that they do not need.

Called by driver.py. Packages are fetched and unpacked, never installed, and none of their scripts is run.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import process
from testbed.binaries import debian
from testbed.errors import TestbedError
from testbed.images import oci, tarball
from testbed.images.interpreter import Interpreter
from testbed.images.store import CacheEntry, Store, key_of
from testbed.progress import Step

RECIPE = 1  # count it up when this module makes something else of the same packages
OLDEST_PYTHON = 11

_ROOTS = ("python3", "libstdc++6")
_WANTED = re.compile(
    r"python3\.\d+-minimal|libpython3\.\d+-(minimal|stdlib)|libc6|libgcc-s1|libstdc\+\+6"
    r"|libssl\d+(t64)?|libexpat1|zlib1g|libffi\d+|libbz2-1\.0|liblzma5|libzstd1|libuuid1"
)
_PARTS_OF_PYTHON_TO_DROP = (
    "config-*", "curses", "dbm", "distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "sitecustomize.py", "sqlite3", "test",
    "tkinter", "turtle.py", "turtledemo", "unittest", "venv", "wsgiref", "xml", "xmlrpc", "*/test", "*/tests",
    "_pydecimal.py", "_pyio.py", "doctest.py", "pickletools.py", "pydoc.py",
    *(f"encodings/{name}.py" for name in (
        "big5*", "cp[!4]*", "cp4[!3]*", "euc_*", "gb*", "hp_*", "hz", "iso2022*", "iso8859_[!1]*", "iso8859_1?", "johab", "koi8*",
        "kz*", "mac_*", "palmos", "ptcp*", "shift_*", "tis_*",
    )),
    *(f"lib-dynload/{name}.*" for name in (
        "_codecs_*", "_crypt", "_ctypes_test", "_curses*", "_dbm", "_gdbm", "_multibytecodec", "_sqlite3", "_test*", "_tkinter", "_xx*",
        "audioop", "nis", "ossaudiodev", "readline", "xx*",
    )),
)  # fmt: skip
_PARTS_OF_LIBC_TO_DROP = (
    "gconv",
    "audit",
    "libc_malloc_debug*",
    "libmemusage*",
    "libmvec*",
    "libpcprofile*",
    "libBrokenLocale*",
)
_ETC = {
    "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


@dataclass(frozen=True)
class Packages:
    """The packages of the layer, as `name=version`, sorted."""

    pins: tuple[str, ...]

    @property
    def python(self) -> str:
        """The minor version of Python in them, like "3.13"."""
        found = [match[1] for pin in self.pins if (match := re.match(r"python(3\.\d+)-minimal=", pin))]
        if not found:
            raise TestbedError("the packages hold no Python", hint="dra-testbed images build driver --with docker")
        return found[0]

    @property
    def key(self) -> str:
        """Of the layer that is made of them."""
        return key_of(["python base", RECIPE, oci.architecture(), self.pins])


def resolve() -> Packages:
    """Ask apt which packages it would take today, and remember the answer."""
    names = [name for name in debian.with_dependencies(_ROOTS) if _WANTED.fullmatch(name)]
    versions = _candidates(names)
    packages = Packages(tuple(f"{name}={versions[name]}" for name in names))
    if int(packages.python.split(".")[1]) < OLDEST_PYTHON:
        raise TestbedError(
            f"this distribution has Python {packages.python}; the driver needs 3.{OLDEST_PYTHON}",
            hint="dra-testbed images build driver --with docker",
        )
    memory = _resolution_file()
    memory.parent.mkdir(parents=True, exist_ok=True)
    new = memory.with_suffix(".new")
    new.write_text(json.dumps(packages.pins, indent=1) + "\n")
    new.replace(memory)
    return packages


def last_resolved() -> Packages | None:
    """What apt answered last time: asking takes a second, and an image is not made anew for each update of a library."""
    try:
        pins = json.loads(_resolution_file().read_text())
        return Packages(tuple(str(pin) for pin in pins)) if isinstance(pins, list) else None
    except (OSError, ValueError):
        return None


def layer(packages: Packages, step: Step) -> CacheEntry:
    """The layer, from the cache or made now."""

    def build(file: Path, scratch: Path) -> dict[str, Any]:
        step.note(f"Python {packages.python} from {len(packages.pins)} packages")
        root = scratch / "root"
        debian.fetch_packages(packages.pins, root)
        _reduce(root, packages.python)
        compiled = Interpreter(root).compile([f"usr/lib/python{packages.python}"])
        made = oci.write_layer([*tarball.tree(root), tarball.folder("tmp", 0o1777)], file)
        return {"digest": made.digest, "packages": list(packages.pins), "compiled": compiled}

    return Store().get_or_build("base", packages.key, step, build)


def _candidates(names: Sequence[str]) -> dict[str, str]:
    """The versions that apt would take; one call for all."""
    said = process.run(["apt-cache", "show", "--no-all-versions", *names], timeout=60).stdout
    return dict(re.findall(r"^Package: (\S+)$.*?^Version: (\S+)$", said, re.M | re.S))


def _resolution_file() -> Path:
    return Store().root / "packages.json"


def _reduce(root: Path, python: str) -> None:
    """Keep the loader, the libraries and Python, with the folders merged below usr/ as every distribution has them today."""
    for name in ("lib", "lib64"):
        if (root / name).is_dir() and not (root / name).is_symlink():
            shutil.copytree(root / name, root / "usr" / name, symlinks=True, dirs_exist_ok=True)
    for unwanted in _unwanted(root, python):
        shutil.rmtree(unwanted) if unwanted.is_dir() and not unwanted.is_symlink() else unwanted.unlink(missing_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    (root / "usr/bin/python3").symlink_to(f"python{python}")
    (root / "etc").mkdir()
    for path, text in _ETC.items():
        (root / path).write_text(text)


def _unwanted(root: Path, python: str) -> Iterator[Path]:
    yield from (entry for entry in list(root.iterdir()) if entry.name != "usr")
    yield from (entry for entry in list((root / "usr").iterdir()) if entry.name not in {"bin", "lib", "lib64"})
    yield from (entry for entry in list((root / "usr/bin").iterdir()) if entry.name != f"python{python}")
    yield from (entry for entry in list((root / "usr/lib").iterdir()) if not _needed_in_lib(entry, python))
    yield from _matching((root / f"usr/lib/python{python}",), _PARTS_OF_PYTHON_TO_DROP)
    yield from _matching(list(root.glob("usr/lib/*-linux-gnu*")), _PARTS_OF_LIBC_TO_DROP)


def _needed_in_lib(entry: Path, python: str) -> bool:
    return entry.name == f"python{python}" or "-linux-gnu" in entry.name or entry.name.startswith("ld-linux")


def _matching(folders: Sequence[Path], patterns: Sequence[str]) -> Iterator[Path]:
    for folder in folders:
        for pattern in patterns:
            yield from list(folder.glob(pattern))

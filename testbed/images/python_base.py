"""Build the driver image's base layer: Python and the libraries that it needs, from the distribution's packages.

Used by driver.py. Packages are downloaded and unpacked, but not installed; their scripts do not run.
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

RECIPE = 1  # increase it when the same packages give another layer
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
        """Return the minor version of Python in the packages, for example "3.13"."""
        found = [match[1] for pin in self.pins if (match := re.match(r"python(3\.\d+)-minimal=", pin))]
        if not found:
            raise TestbedError(
                "the distribution's packages for the driver's image contain no Python",
                hint="dra-testbed images build driver --with docker",
            )
        return found[0]

    @property
    def key(self) -> str:
        """Return the cache key of the layer."""
        return key_of(["python base", RECIPE, oci.architecture(), self.pins])


def resolve() -> Packages:
    """Ask apt which package versions it would install, and store the answer for last_resolved()."""
    names = [name for name in debian.with_dependencies(_ROOTS) if _WANTED.fullmatch(name)]
    versions = _candidates(names)
    packages = Packages(tuple(f"{name}={versions[name]}" for name in names))
    if int(packages.python.split(".")[1]) < OLDEST_PYTHON:
        raise TestbedError(
            f"this distribution has Python {packages.python}; the driver needs at least 3.{OLDEST_PYTHON}",
            hint="dra-testbed images build driver --with docker",
        )
    file = _resolution_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(packages.pins, indent=1) + "\n")
    new.replace(file)
    return packages


def last_resolved() -> Packages | None:
    """Return what apt answered last time, or None.

    Asking apt takes a second, and an update of a library alone is no reason to rebuild the image.
    """
    try:
        pins = json.loads(_resolution_file().read_text())
        return Packages(tuple(str(pin) for pin in pins)) if isinstance(pins, list) else None
    except (OSError, ValueError):
        return None


def layer(packages: Packages, step: Step) -> CacheEntry:
    """Return the layer from the cache, or build it."""

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
    """Return the version of each package that apt would install."""
    output = process.run(["apt-cache", "show", "--no-all-versions", *names], timeout=60).stdout
    return dict(re.findall(r"^Package: (\S+)$.*?^Version: (\S+)$", output, re.M | re.S))


def _resolution_file() -> Path:
    return Store().root / "packages.json"


def _reduce(root: Path, python: str) -> None:
    """Keep only the loader, the libraries and Python, in a merged /usr as in every current distribution."""
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

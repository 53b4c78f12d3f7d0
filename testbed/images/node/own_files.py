"""The files that only our node image has: the content of files/, with the same paths. Used by assemble.py."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from testbed.images import tarball
from testbed.images.node.kind_files import enable_links
from testbed.images.tarball import Member

_FILES = Path(__file__).parent / "files"


def members() -> Iterator[Member]:
    """Yield the files and the links of enabled units. Files in a folder named `bin` are executable, as in kind's module."""
    for path in _files():
        yield tarball.file(str(path.relative_to(_FILES)), path, 0o755 if path.parent.name == "bin" else 0o644)
        if path.suffix == ".service":
            yield from enable_links(path.name, path.read_text())


def digest() -> str:
    """Return a digest of all files and their paths."""
    content = hashlib.sha256()
    for path in _files():
        content.update(f"{path.relative_to(_FILES)}\0".encode() + path.read_bytes() + b"\0")
    return content.hexdigest()


def _files() -> list[Path]:
    return [path for path in sorted(_FILES.rglob("*")) if path.is_file()]

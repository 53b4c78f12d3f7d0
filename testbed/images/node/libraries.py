"""Find the shared libraries that a program needs in an unpacked root file system. Used by proxy.py and assemble.py.

The root's dynamic loader is started as a program with the root's own libraries, so neither chroot nor root permissions are needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed import process
from testbed.errors import CommandFailed, TestbedError
from testbed.images.elf import is_static


@dataclass(frozen=True)
class Libraries:
    """The shared libraries of a root file system."""

    root: Path

    def needed_by(self, programs: Iterable[Path]) -> set[Path]:
        """Return the libraries of the root that these programs (or libraries) need, by the names that they request."""
        return {path for program in programs for path in self._listed(program) if path.is_relative_to(self.root)}

    def satisfy(self, program: Path) -> bool:
        """Return True if a program that was built elsewhere would start in the root, whose C library may be too old for it."""
        if is_static(program):
            return True
        try:
            self._listed(program)
        except CommandFailed:
            return False
        return True

    def loader(self) -> Path:
        """Return the loader itself: symlinks to it are absolute, so they would resolve to this host's loader."""
        found = [file for file in sorted(self.root.glob("usr/lib/*/ld-linux*.so.*")) if not file.is_symlink()]
        if not found:
            raise TestbedError(f"no dynamic loader found in {self.root}/usr/lib")
        return found[0]

    def _listed(self, program: Path) -> list[Path]:
        loader = self.loader()
        output = process.run([loader, "--library-path", loader.parent, "--list", program]).stdout
        return [Path(path) for path in re.findall(r"=> (\S+) \(", output)]

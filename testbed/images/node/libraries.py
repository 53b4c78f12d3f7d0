"""Asks the loader of an unpacked root file system which libraries a program needs there. For proxy.py and assemble.py.

The loader is started as a program, with the root's own libraries: nothing is changed into, and no right is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed import process
from testbed.errors import CommandFailed, TestbedError
from testbed.images.busybox import is_static


@dataclass(frozen=True)
class Libraries:
    """The libraries of a root file system."""

    root: Path

    def needed_by(self, programs: Iterable[Path]) -> set[Path]:
        """The libraries that these programs (or libraries) of the root need, each under the name that they ask for."""
        return {path for program in programs for path in self._listed(program) if path.is_relative_to(self.root)}

    def satisfy(self, program: Path) -> bool:
        """Whether a program that was built elsewhere would start in the root: its C library may be older than the builder's."""
        if is_static(program):
            return True
        try:
            self._listed(program)
        except CommandFailed:
            return False
        return True

    def loader(self) -> Path:
        """The loader itself; the links to it are absolute, and would lead to this host's."""
        found = [file for file in sorted(self.root.glob("usr/lib/*/ld-linux*.so.*")) if not file.is_symlink()]
        if not found:
            raise TestbedError(f"there is no loader below {self.root}/usr/lib")
        return found[0]

    def _listed(self, program: Path) -> list[Path]:
        loader = self.loader()
        said = process.run([loader, "--library-path", loader.parent, "--list", program]).stdout
        return [Path(path) for path in re.findall(r"=> (\S+) \(", said)]

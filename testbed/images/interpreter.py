"""Run the Python of an unpacked image on this host, with the image's own loader and libraries; this needs neither root nor chroot.

Used by driver.py, python_base.py and wheels.py to compile the modules of an image and to check that they can be imported.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import process
from testbed.errors import CommandFailed, TestbedError
from testbed.process import Completed


@dataclass(frozen=True)
class Interpreter:
    """The Python of an image that is unpacked in `root`."""

    root: Path

    def compile(self, folders: Sequence[str]) -> bool:
        """Compile the modules of these folders, which makes a container start about twice as fast.

        The byte code is marked as unchecked, because all sources have the same modification time, and contains paths of the
        image. Return False if this Python cannot run here, for example in a folder that is mounted with noexec.
        """
        if not self.runs_here():
            return False
        paths = [self.root / folder for folder in folders]
        flags = ("--invalidation-mode", "unchecked-hash", "-s", self.root, "-p", "/")
        self._run_python(["-m", "compileall", "-q", "-f", *flags, *paths], {})
        return True

    def runs_here(self) -> bool:
        """Return True if this Python can run on this host."""
        try:
            return self._run_python(["-c", "pass"], {}).ok
        except (CommandFailed, TestbedError, OSError):
            return False

    def check_imports(self, modules: Sequence[str], path: Sequence[str]) -> None:
        """Import the modules from these folders of the image. Raises CommandFailed if an import fails."""
        folders = os.pathsep.join(str(self.root / folder) for folder in path)
        self._run_python(["-c", f"import {', '.join(modules)}"], {"PYTHONPATH": folders})

    def _run_python(self, words: Sequence[str | Path], env: dict[str, str]) -> Completed:
        """Run this Python. Imports must not write byte code, because it would contain paths of this host; only compile() may."""
        loader = self._loader()
        always = {
            "PYTHONHOME": str(self.root / "usr"),
            "LC_ALL": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        argv = [loader, "--library-path", loader.parent, self.root / "usr/bin/python3", "-S", "-P", *words]
        return process.run(argv, env={**always, **env}, timeout=300)

    def _loader(self) -> Path:
        """Return the loader itself: symlinks to it are absolute, so they would resolve to this host's loader."""
        found = [file for file in sorted(self.root.glob("usr/lib/*/ld-linux*.so.*")) if not file.is_symlink()]
        if not found:
            raise TestbedError(f"no dynamic loader found in {self.root}/usr/lib")
        return found[0]

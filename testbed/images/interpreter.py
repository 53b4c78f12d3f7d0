"""Runs the Python of an unpacked image on this host: through the image's own loader and libraries, so neither root nor chroot is needed.

For driver.py, python_base.py and wheels.py, which compile an image's modules with it and try whether they can be imported.
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
    """The Python below the root of an unpacked image."""

    root: Path

    def compile(self, folders: Sequence[str]) -> bool:
        """Put the byte code beside the modules of these folders, which makes a container's start about twice as fast.

        It is not compared with the sources' times (they are all 1970), and its paths are those inside the image. False when
        this Python does not run here, for example on another architecture or from a folder that forbids programs.
        """
        if not self.runs_here():
            return False
        places = [self.root / folder for folder in folders]
        how = ("--invalidation-mode", "unchecked-hash", "-s", self.root, "-p", "/")
        self._run_python(["-m", "compileall", "-q", "-f", *how, *places], {})
        return True

    def runs_here(self) -> bool:
        """Whether it runs on this host at all."""
        try:
            return self._run_python(["-c", "pass"], {}).ok
        except (CommandFailed, TestbedError, OSError):
            return False

    def check_imports(self, modules: Sequence[str], path: Sequence[str]) -> None:
        """Import the modules from these folders of the image; an error if one cannot be."""
        where = os.pathsep.join(str(self.root / folder) for folder in path)
        self._run_python(["-c", f"import {', '.join(modules)}"], {"PYTHONPATH": where})

    def _run_python(self, words: Sequence[str | Path], env: dict[str, str]) -> Completed:
        """Run it. Only compile() may write byte code: what an import writes names the paths of this host."""
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
        """The loader itself; the links to it are absolute, and would lead to this host's."""
        found = [file for file in sorted(self.root.glob("usr/lib/*/ld-linux*.so.*")) if not file.is_symlink()]
        if not found:
            raise TestbedError(f"there is no loader below {self.root}/usr/lib")
        return found[0]

from __future__ import annotations

import importlib.util
import marshal
import py_compile
from pathlib import Path

import pytest

from testbed.errors import CommandFailed
from testbed.images.interpreter import Interpreter


@pytest.fixture
def root(tmp_path: Path, loader: str) -> Path:
    """Return an image whose loader starts the Python of the tests."""
    program = tmp_path / "usr/lib/x-linux-gnu/ld-linux-x.so.2"
    program.parent.mkdir(parents=True)
    program.write_text(loader)
    program.chmod(0o755)
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/module.py").write_text("NAME = 1\n")
    return tmp_path


def test_the_byte_code_has_paths_of_the_image_and_is_unchecked(root: Path) -> None:
    assert Interpreter(root).compile(["opt"])

    code = Path(importlib.util.cache_from_source(str(root / "opt/module.py"))).read_bytes()
    assert int.from_bytes(code[4:8], "little") == 0b01  # a hash, and unchecked
    assert marshal.loads(code[16:]).co_filename == "/opt/module.py"


def test_compiling_twice_gives_the_same_bytes(root: Path) -> None:
    file = Path(importlib.util.cache_from_source(str(root / "opt/module.py")))
    Interpreter(root).compile(["opt"])
    first = file.read_bytes()
    file.unlink()
    Interpreter(root).compile(["opt"])

    assert file.read_bytes() == first


def test_an_import_writes_no_byte_code_and_compile_replaces_existing_byte_code(root: Path) -> None:
    file = Path(importlib.util.cache_from_source(str(root / "opt/module.py")))
    Interpreter(root).check_imports(["module"], ["opt"])
    assert not file.exists()

    py_compile.compile(str(root / "opt/module.py"), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    Interpreter(root).compile(["opt"])
    assert str(root).encode() not in file.read_bytes()


def test_nothing_is_compiled_if_the_loader_is_missing_or_does_not_run(root: Path) -> None:
    (root / "usr/lib/x-linux-gnu/ld-linux-x.so.2").write_text("#!/bin/sh\nexit 126\n")
    assert not Interpreter(root).compile(["opt"])

    (root / "usr/lib/x-linux-gnu/ld-linux-x.so.2").unlink()
    assert not Interpreter(root).compile(["opt"])
    assert not (root / "opt/__pycache__").exists()


def test_symlinks_to_the_loader_are_ignored(root: Path) -> None:
    (root / "usr/lib/a-linux-gnu").mkdir()
    (root / "usr/lib/a-linux-gnu/ld-linux-x.so.2").symlink_to("/bin/false")

    assert Interpreter(root).runs_here()


def test_a_module_that_cannot_be_imported_is_an_error(root: Path) -> None:
    Interpreter(root).check_imports(["module"], ["opt"])

    with pytest.raises(CommandFailed, match="No module named 'absent_module'"):
        Interpreter(root).check_imports(["module", "absent_module"], ["opt"])

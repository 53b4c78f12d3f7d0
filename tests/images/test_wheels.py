from __future__ import annotations

import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import CommandFailed, TestbedError
from testbed.images import oci, python_base, wheels
from testbed.progress import Step


@pytest.fixture
def base(distribution: Any) -> Path:
    return python_base.layer(python_base.resolve(), Step("t")).file


def test_pip_downloads_for_the_images_python_and_architecture_and_checks_hashes(base: Path, pip: Any) -> None:
    wheels.layer(wheels.Wheels("3.13", "base"), base, Step("t"))

    (call,) = pip.calls
    assert "--require-hashes" in call
    assert "--only-binary :all: " in call
    assert "--python-version 3.13 " in call
    assert f"manylinux2014_{ {'amd64': 'x86_64', 'arm64': 'aarch64'}[oci.architecture()] } " in call
    assert call.endswith(f"--requirement {wheels.requirements()}")


def test_the_layer_contains_modules_and_byte_code_but_no_development_files(base: Path, pip: Any) -> None:
    entry = wheels.layer(wheels.Wheels("3.13", "base"), base, Step("t"))

    with tarfile.open(entry.file) as tar:
        names = {name.removeprefix(wheels.DIST_PACKAGES + "/") for name in tar.getnames()}
    assert {"grpc/__init__.py", "google/protobuf/__init__.py", "yaml/__init__.py"} <= names
    assert any(name.startswith("grpc/__pycache__/__init__.") for name in names)
    assert not names & {"grpc/types.pyi", "yaml/_yaml.x.so"}
    assert "usr/bin" not in names
    assert entry.facts["wheels"] == ["grpcio-1.0-py3-none-any.whl"]


def test_another_python_or_another_base_gives_another_layer() -> None:
    keys = {wheels.Wheels(python, base).key for python in ("3.12", "3.13") for base in ("one", "two")}

    assert len(keys) == 4


def test_the_error_of_a_failed_pip_has_its_output_and_a_hint(
    base: Path, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        wheels, "_pip", lambda: [str(script("pip", "echo THESE PACKAGES DO NOT MATCH THE HASHES >&2; exit 1"))]
    )

    with pytest.raises(CommandFailed, match=r"(?s)DO NOT MATCH THE HASHES.*try: .*--with docker"):
        wheels.layer(wheels.Wheels("3.13", "base"), base, Step("t"))


def test_the_error_for_a_missing_pip_has_a_hint(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)

    with pytest.raises(TestbedError, match="install python3-pip"):
        wheels.layer(wheels.Wheels("3.13", "base"), base, Step("t"))


def test_every_requirement_is_exact_and_has_hashes() -> None:
    text = re.sub(r"\\\n\s*", "", wheels.requirements().read_text())
    lines = [line for line in text.splitlines() if not line.startswith("#")]

    assert [
        line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9.]+( --hash=sha256:[0-9a-f]{64})+", line)
    ] == []
    assert {line.split("==")[0] for line in lines} >= {"grpcio", "protobuf", "pyyaml", "urllib3"}

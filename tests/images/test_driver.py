from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from testbed.errors import CommandFailed, TestbedError
from testbed.images import docker, driver
from testbed.images.driver import cached
from testbed.progress import Progress, Silent

pytestmark = pytest.mark.usefixtures("installation", "distribution", "pip", "no_docker")


@pytest.fixture
def no_docker(script: Any) -> None:
    script("docker", "echo Cannot connect to the Docker daemon >&2; exit 1")


def test_the_image_has_layers_for_python_the_wheels_and_the_code(
    progress: Silent, read_archive: Callable[[Path], Any], tmp_path: Path
) -> None:
    image = driver(progress)
    parts = read_archive(image.archive)

    assert "usr/bin/python3.13" in parts.layer(0, tmp_path)
    assert "usr/lib/python3/dist-packages/grpc/__init__.py" in parts.layer(1, tmp_path)
    code = {name for name, member in parts.layer(2, tmp_path).items() if member.isfile() and "__pycache__" not in name}
    assert code == {
        "opt/dra-testbed/fake_driver/__init__.py", "opt/dra-testbed/testbed/__init__.py",
        "opt/dra-testbed/testbed/kubelet/__init__.py", "opt/dra-testbed/testbed/kubelet/stubs/dra.py",
    }  # fmt: skip
    assert parts.config["config"]["Entrypoint"] == ["python3", "-m", "fake_driver"]
    assert {"PYTHONPATH=/opt/dra-testbed", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"} <= set(
        parts.config["config"]["Env"]
    )


def test_a_cached_image_is_returned_without_apt_pip_or_output(progress: Silent, distribution: Any, pip: Any) -> None:
    first = driver(progress)

    assert driver(progress) == first == cached()
    assert (len(distribution.fetched), len(pip.calls), len(progress.steps)) == (1, 1, 1)


def test_a_change_of_the_code_rebuilds_one_layer_and_changes_the_name(
    progress: Silent, installation: Path, distribution: Any, pip: Any, read_archive: Callable[[Path], Any]
) -> None:
    before = driver(progress)
    (installation / "fake_driver/new.py").write_text("x = 1\n")
    after = driver(progress)

    old, new = (read_archive(image.archive).manifest["layers"] for image in (before, after))
    assert before.reference != after.reference
    assert (old[:2], len(distribution.fetched), len(pip.calls)) == (new[:2], 1, 1)
    assert old[2] != new[2]


def test_byte_code_and_type_stubs_in_the_checkout_do_not_change_the_image(progress: Silent, installation: Path) -> None:
    before = driver(progress)
    (installation / "fake_driver/__pycache__").mkdir()
    (installation / "fake_driver/__pycache__/x.pyc").write_text("")
    (installation / "testbed/kubelet/stubs/dra.pyi").write_text("")

    assert cached() == before


def test_another_cache_gets_the_same_bytes(progress: Silent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = driver(progress).archive.read_bytes()
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "elsewhere"))

    assert driver(progress).archive.read_bytes() == here


def test_code_that_cannot_be_imported_is_an_error(progress: Silent, installation: Path) -> None:
    (installation / "fake_driver/__init__.py").write_text("import absent_module\n")

    with pytest.raises(CommandFailed, match="absent_module"):
        driver(progress)
    assert cached() is None


def test_only_a_refresh_uses_newer_packages(progress: Silent, distribution: Any) -> None:
    first = driver(progress)
    distribution.versions["libc6"] = "2.40-2"

    assert driver(progress) == first
    assert driver(progress, refresh=True) != first


def test_package_versions_that_the_mirror_no_longer_has_are_resolved_again(
    progress: Silent, distribution: Any, cache: Path
) -> None:
    driver(progress, refresh=True)
    for entry in [*cache.glob("base-*/entry.json"), *cache.glob("driver-*/entry.json")]:
        entry.unlink()
    distribution.versions["libc6"] = "2.40-2"
    distribution.served = {f"{name}={version}" for name, version in distribution.versions.items()}

    driver(progress)

    assert [pins[0] for pins in distribution.fetched] == ["libc6=2.40-1", "libc6=2.40-1", "libc6=2.40-2"]


def test_packages_that_cannot_be_downloaded_are_an_error(progress: Silent, distribution: Any) -> None:
    distribution.served = set()

    with pytest.raises(TestbedError, match="apt-get download failed"):
        driver(progress)


def test_docker_builds_the_image_if_an_engine_answers(
    progress: Silent, monkeypatch: pytest.MonkeyPatch, distribution: Any
) -> None:
    def build(reference: str, code: Path, archive: Path, scratch: Path, step: Any) -> dict[str, Any]:
        archive.write_text(reference)
        assert (code / "testbed/kubelet/stubs/dra.py").exists()
        return {"digest": "sha256:d"}

    monkeypatch.setattr(docker, "is_available", lambda: True)
    monkeypatch.setattr(docker, "build", build)

    image = driver(progress)

    assert image == cached("docker") == cached()
    assert (image.digest, image.archive.read_text(), distribution.fetched) == ("sha256:d", image.reference, [])
    assert cached("packages") is None


def test_when_docker_fails_packages_are_used_and_the_reason_is_printed(script: Any, tmp_path: Path) -> None:
    script("docker", "test $1 = version && echo 28 && exit; echo 'pull access denied'; exit 1")
    with (tmp_path / "said").open("w") as sink:
        image = driver(Progress(Console(file=sink, width=400)))

    assert image == cached("packages")
    assert "Docker could not build the driver's image (pull access denied)" in (tmp_path / "said").read_text()


def test_a_failure_of_docker_is_an_error_if_docker_was_requested(progress: Silent, distribution: Any) -> None:
    with pytest.raises(CommandFailed, match="Cannot connect to the Docker daemon"):
        driver(progress, build_with="docker")
    assert distribution.fetched == []


def test_packages_are_used_if_they_were_requested_even_with_docker(
    progress: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "is_available", lambda: True)

    assert driver(progress, build_with="packages") == cached("packages")


def test_an_installation_without_the_driver_is_an_error(progress: Silent, installation: Path) -> None:
    (installation / "fake_driver/__init__.py").unlink()
    (installation / "fake_driver").rmdir()

    with pytest.raises(TestbedError, match="the installation is damaged"):
        driver(progress)

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from testbed.binaries import Lock
from testbed.cli import images as commands
from testbed.cli.main import run
from testbed.errors import UsageError
from testbed.images import Image, basics, oci, tarball
from testbed.images.archives import names_in
from testbed.images.driver import RELEASE
from tests.fakes.programs import static_program


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Replace image builds with small files, and return the calls."""
    asked: list[tuple[str, Any]] = []

    def maker(name: str) -> Any:
        def make(progress: object, **how: Any) -> Image:
            asked.append((name, how))
            (tmp_path / name).write_bytes(b"x" * 1_500_000)
            return Image(name, f"localhost/dra-testbed/{name}:1", tmp_path / name, "sha256:abc")

        return make

    monkeypatch.setattr(basics, "sandbox", maker("sandbox"))
    monkeypatch.setattr(basics, "workload", maker("workload"))
    monkeypatch.setattr(commands, "driver", maker("driver"))
    return asked


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "cache"))


def test_all_images_are_built_in_order_if_none_is_named(made: list[tuple[str, Any]]) -> None:
    result = CliRunner().invoke(commands.group, ["build"], catch_exceptions=False)

    assert result.exit_code == 0
    assert [name for name, _ in made] == ["sandbox", "workload", "driver"]
    assert result.stdout.splitlines()[0].startswith("localhost/dra-testbed/sandbox:1  1.5 MB  sha256:abc  ")


def test_an_image_is_built_in_the_requested_way(made: list[tuple[str, Any]]) -> None:
    CliRunner().invoke(commands.group, ["build", "driver", "--with", "packages"], catch_exceptions=False)

    assert made == [("driver", {"build_with": "packages", "refresh": True})]


def test_an_unknown_image_is_wrong_usage(made: list[tuple[str, Any]]) -> None:
    result = CliRunner().invoke(commands.group, ["build", "drivr"])

    assert result.exit_code == 2
    assert made == []


def test_the_list_shows_which_images_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "archive").write_bytes(b"x" * 2_000_000)
    there = Image("driver", "localhost/dra-testbed/driver:12", tmp_path / "archive", "sha256:abc")
    monkeypatch.setattr(commands, "cached_driver", lambda: there)

    rows = json.loads(CliRunner().invoke(commands.group, ["list", "-o", "json"], catch_exceptions=False).stdout)
    table = CliRunner().invoke(commands.group, ["list"], catch_exceptions=False).stdout

    assert rows[2] == {
        "image": "driver", "cached": True, "reference": there.reference, "digest": "sha256:abc", "size": 2_000_000,
        "archive": str(there.archive),
    }  # fmt: skip
    assert [(row["image"], row["cached"], row["size"]) for row in rows[:2]] == [
        ("sandbox", False, None),
        ("workload", False, None),
    ]
    assert "2.0 MB" in table.splitlines()[3]
    assert "localhost/dra-testbed/driver:12" in table.splitlines()[3]


@pytest.fixture
def node_image(tmp_path: Path) -> Image:
    (tmp_path / "node").write_bytes(b"x" * 3_000_000)
    return Image("node", "localhost/dra-testbed/node:v1.36.4-12", tmp_path / "node", "sha256:def")


def test_the_list_has_cached_node_images(node_image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "cached_node", lambda lock: node_image if lock.minor == "1.36" else None)

    rows = json.loads(CliRunner().invoke(commands.group, ["list", "-o", "json"], catch_exceptions=False).stdout)

    assert [row["image"] for row in rows[3:]] == ["node 1.36"]
    assert rows[3]["reference"] == node_image.reference


def test_a_node_image_is_made_for_the_requested_version(node_image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def make(lock: Lock, progress: object) -> Image:
        asked.append(lock.kubernetes)
        return node_image

    monkeypatch.setattr(commands, "make_node", make)

    result = CliRunner().invoke(commands.group, ["node", "--kubernetes", "1.36"], catch_exceptions=False)

    assert asked == ["1.36.4"]
    first, archive = result.stdout.splitlines()
    assert first.startswith(f"{node_image.reference}  3.0 MB  sha256:def  ")
    assert archive == str(node_image.archive)


def test_a_node_image_of_an_unknown_version_is_wrong_usage() -> None:
    result = CliRunner().invoke(commands.group, ["node", "--kubernetes", "1.12"])

    assert isinstance(result.exception, UsageError)


def test_an_image_is_saved_with_the_name_in_the_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    layer = oci.write_layer([tarball.file("hello", "world")], tmp_path / "layer.tar")
    archive = tmp_path / "cached.tar"
    config = oci.configuration(oci.ContainerSettings(), [layer], ["a layer"])
    digest = oci.write_archive("localhost/x:abc", config, [layer], archive)
    monkeypatch.setattr(commands, "cached_driver", lambda: Image("driver", "localhost/x:abc", archive, digest))

    assert run(["images", "save", "driver", str(tmp_path / "driver.tar")]) == 0
    assert capsys.readouterr().out.split() == [RELEASE, "0.0", "MB", digest]
    with tarfile.open(tmp_path / "driver.tar") as saved:
        content = saved.extractfile("manifest.json")
        assert content
        assert json.load(content)[0]["RepoTags"] == [RELEASE]
    assert {path.name for path in tmp_path.iterdir()} == {"layer.tar", "cached.tar", "driver.tar"}


@pytest.mark.parametrize("command", [["binaries", "list"], ["images", "list"], ["list"]])
def test_a_narrow_terminal_breaks_no_name(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "archive").write_text("")
    image = Image("any", "localhost/dra-testbed/any:1", tmp_path / "archive", f"sha256:{'a' * 64}")
    monkeypatch.setattr(commands, "_cached", lambda _: image)
    assert run([*command, "-o", "json"]) == 0
    names = [next(iter(row.values())) for row in json.loads(capsys.readouterr().out)]
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")

    assert run(command) == 0
    shown = {line.split("  ")[0] for line in capsys.readouterr().out.splitlines()}
    assert set(names) <= shown


class _Nodes:
    """A cluster into whose nodes images can be loaded."""

    def __init__(self) -> None:
        self.loaded: list[Path] = []

    def load_image(self, archive: Path) -> None:
        self.loaded.append(archive)


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> _Nodes:
    made = _Nodes()
    monkeypatch.setattr("testbed.bringup.image_loading.attach", lambda _: SimpleNamespace(cluster=made))
    return made


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    file = tmp_path / "driver"
    file.write_bytes(static_program())
    return file


def test_an_image_of_a_program_is_written_and_loaded(
    tmp_path: Path, binary: Path, nodes: _Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "driver.tar"
    options = ["--at", "/dranet", "--entrypoint", "/dranet -v=4", "--output", str(archive), "--testbed", "mine"]

    assert run(["images", "program", str(binary), "--as", "localhost/driver:1", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("localhost/driver:1  0.0 MB  sha256:")
    assert lines[1:] == [str(archive), "loaded into testbed mine"]
    assert names_in(archive) == ("localhost/driver:1",)
    assert [each.read_bytes() for each in nodes.loaded] == [archive.read_bytes()]


def test_an_archive_is_loaded_into_a_testbed(
    tmp_path: Path, binary: Path, nodes: _Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["images", "program", str(binary), "--as", "driver", "--output", str(tmp_path / "a.tar")]) == 0
    capsys.readouterr()

    assert run(["images", "load", str(tmp_path / "a.tar"), "--name", "mine"]) == 0
    assert capsys.readouterr().out == "docker.io/library/driver:latest  loaded into testbed mine\n"
    assert nodes.loaded == [tmp_path / "a.tar"]


def test_images_cannot_be_loaded_into_a_cluster_of_others(
    tmp_path: Path, binary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    existing = SimpleNamespace(cluster=object(), config=SimpleNamespace(provider="existing"))
    monkeypatch.setattr("testbed.bringup.image_loading.attach", lambda _: existing)
    run(["images", "program", str(binary), "--as", "driver", "--output", str(tmp_path / "a.tar")])

    assert run(["images", "load", str(tmp_path / "a.tar")]) == 2
    assert "its provider existing does not own the nodes" in capsys.readouterr().err


def test_wrong_entry_points_and_files_are_wrong_usage(tmp_path: Path, binary: Path) -> None:
    assert run(["images", "program", str(binary), "--as", "driver", "--entrypoint", "'"]) == 2
    assert run(["images", "load", str(binary)]) == 2

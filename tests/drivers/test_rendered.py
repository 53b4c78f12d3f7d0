"""The YAML for `kubectl apply -f` is up to date and complete."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from testbed.drivers import rendered
from testbed.images.driver import RELEASE

FILES = dict(rendered.rendered_files())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rendered_files_are_up_to_date(path: Path) -> None:
    assert path.read_text() == FILES[path], "run: python -m testbed.drivers.rendered"


def test_the_folder_has_no_other_files() -> None:
    (folder,) = {path.parent for path in FILES}
    assert set(folder.iterdir()) == set(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rendered_files_have_no_variables_and_name_the_saved_image(path: Path) -> None:
    objects = list(yaml.safe_load_all(path.read_text()))
    assert all(each["metadata"]["name"] for each in objects)
    assert objects[0]["kind"] == "Namespace"
    workloads = [each for each in objects if each["kind"] in {"DaemonSet", "Deployment"}]
    images = {one["image"] for each in workloads for one in each["spec"]["template"]["spec"]["containers"]}
    assert images == {RELEASE}
    assert not any(mark in path.read_text() for mark in ("{{", "{%"))


def test_stale_files_are_listed_and_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rendered" / "one.yaml"
    monkeypatch.setattr(rendered, "rendered_files", lambda: iter([(file, "new")]))
    assert rendered.main(["--check"]) == 1
    assert f"{file} is stale" in capsys.readouterr().err
    assert rendered.main([]) == 0
    assert file.read_text() == "new"
    assert rendered.main(["--check"]) == 0


def test_unknown_arguments_are_refused() -> None:
    assert rendered.main(["--all"]) == 2

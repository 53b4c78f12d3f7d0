"""The YAML for `kubectl apply -f` is what the templates say today, and complete."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from testbed.drivers import rendered
from testbed.images.driver import RELEASE

FILES = dict(rendered.rendered_files())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_fresh(path: Path) -> None:
    assert path.read_text() == FILES[path], "run: python -m testbed.drivers.rendered"


def test_nothing_else_lies_beside_it() -> None:
    (folder,) = {path.parent for path in FILES}
    assert set(folder.iterdir()) == set(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_needs_nothing_to_be_filled_in_and_names_the_image_that_is_saved(path: Path) -> None:
    objects = list(yaml.safe_load_all(path.read_text()))
    assert all(each["metadata"]["name"] for each in objects)
    assert objects[0]["kind"] == "Namespace"
    workloads = [each for each in objects if each["kind"] in {"DaemonSet", "Deployment"}]
    images = {one["image"] for each in workloads for one in each["spec"]["template"]["spec"]["containers"]}
    assert images == {RELEASE}
    assert not any(mark in path.read_text() for mark in ("{{", "{%"))


def test_what_is_stale_is_named_and_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rendered" / "one.yaml"
    monkeypatch.setattr(rendered, "rendered_files", lambda: iter([(file, "new")]))
    assert rendered.main(["--check"]) == 1
    assert f"{file} is stale" in capsys.readouterr().err
    assert rendered.main([]) == 0
    assert file.read_text() == "new"
    assert rendered.main(["--check"]) == 0


def test_another_word_is_refused() -> None:
    assert rendered.main(["--all"]) == 2

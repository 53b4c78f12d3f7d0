from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cli.main import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("install.yaml", "kubeconfig"):
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "there is no driver to describe"),
        ("--from install.yaml --kubeconfig kubeconfig", "install the driver in the cluster first"),
        ("--from install.yaml --values install.yaml", "--values install.yaml is for a chart"),
        ("--from install.yaml --process ./driver", "--process is a program of this host"),
        ("--process ./driver --kubeconfig kubeconfig", "install the driver in the cluster first"),
        ("--from nothing.yaml", "nothing.yaml"),
        ("--from install.yaml --output kubeconfig", "kubeconfig exists"),
        ("--testbed nothing", "there is no testbed nothing"),
    ],
)
def test_mistakes_are_reported_before_a_testbed_is_made(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["driver", "init", *words.split()]) == 2
    assert message in capsys.readouterr().err

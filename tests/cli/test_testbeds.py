"""The output of `up`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed import bringup
from testbed.cli.main import run


@pytest.mark.parametrize(("words", "shown"), [([], "resourceslices"), (["--driver", "none"], "nodes")])
def test_up_prints_what_to_look_at(
    words: list[str], shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: Any = SimpleNamespace(name="mine", folder=tmp_path)
    monkeypatch.setattr(bringup, "bring_up", lambda *_: made)

    assert run(["up", "--name", "mine", *words]) == 0
    assert f"  kubectl get {shown}\n" in capsys.readouterr().out

"""The shared options, and the configuration that they make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from testbed.cli import options
from testbed.drivers import load_with_companions
from testbed.errors import UsageError


@click.command()
@options.testbed
@options.driver
def show(**flags: Any) -> None:
    click.echo(options.configuration(flags).as_yaml())


def shown(*words: str) -> str:
    return CliRunner().invoke(show, words, catch_exceptions=False).output


def test_the_help_names_the_default_driver_and_its_companions() -> None:
    default = options.configuration({}).driver
    assert default
    subject, *beside = [each.name for each in load_with_companions(default)]
    said = " ".join(CliRunner().invoke(show, ["--help"], terminal_width=500).output.split())

    assert f"are installed, but not judged. [default: {subject}, with {', '.join(beside)}]" in said


def test_all_flags_reach_the_configuration(tmp_path: Path) -> None:
    said = shown(
        "--name", "mine", "--provider", "local", "--kubernetes", "1.36", "--nodes", "3", "--driver", "none",
        "--feature-gate", "A=true,B=false", "--feature-gate", "C=true", "--runtime-config", "x/v1",
        "--binaries-from", str(tmp_path), "--binaries-from", "cache,build",
    )  # fmt: skip

    for line in [
        "name: mine",
        "kubernetes: '1.36'",
        "nodes: 3",
        "driver: none",
        "A: true",
        "B: false",
        "C: true",
        "x/v1: 'true'",
    ]:
        assert f" {line}\n" in said
    assert f"binariesFrom:\n  - {tmp_path}\n  - cache\n  - build\n" in said


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "testbed.yaml"
    file.write_text("{apiVersion: dra-testbed/v1alpha1, kind: Testbed, metadata: {name: mine}, spec: {nodes: 5}}")

    said = shown("--config", str(file), "--nodes", "1")

    assert "name: mine" in said
    assert "nodes: 1\n" in said


def test_an_invalid_feature_gate_is_refused() -> None:
    with pytest.raises(UsageError, match="Name=true"):
        shown("--feature-gate", "A")


def test_data_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    options.print_json({"path": Path("/ä")})

    said = capsys.readouterr().out
    assert json.loads(said) == {"path": "/ä"}
    assert "ä" in said

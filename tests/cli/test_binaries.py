from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from testbed.cli.binaries import group
from testbed.errors import TestbedError, UsageError


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DRA_TESTBED_MIRROR", "http://127.0.0.1:9")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.fixture
def kubelet(tmp_path: Path) -> Path:
    """Return a folder with a kubelet of the user's own."""
    path = tmp_path / "mine/kubelet"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\necho Kubernetes v1.36.4\n")
    path.chmod(0o755)
    return path


def run(*words: str) -> Result:
    return CliRunner().invoke(group, words, catch_exceptions=False)


def test_the_list_names_each_program_of_the_newest_kubernetes() -> None:
    output = run("list").output

    assert output.splitlines()[0].split() == ["program", "version", "cached", "path"]
    assert "kubelet                  1.37.1   no" in output


def test_the_list_can_be_printed_as_json() -> None:
    rows = json.loads(run("list", "--kubernetes", "1.34", "-o", "json").output)

    assert {"program": "kubeadm", "version": "1.34.10", "cached": None, "origin": None, "path": None} in rows


def test_the_path_of_a_missing_program_is_an_error_with_a_hint() -> None:
    with pytest.raises(TestbedError, match=r"(?s)ctr of .*dra-testbed binaries fetch --kubernetes 1\.37 ctr"):
        run("path", "ctr")


def test_an_unknown_program_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="did you mean ctr"):
        run("path", "ctrl")


def test_a_program_from_a_folder_needs_no_fetching(kubelet: Path) -> None:
    result = run("fetch", "--kubernetes", "1.36", "--binaries-from", str(kubelet.parent), "kubelet")

    assert result.exit_code == 0
    assert "1 of 1 available" in result.output


def test_an_unreachable_source_is_an_error_with_its_reason() -> None:
    with pytest.raises(TestbedError, match=r"download: .*refused"):
        run("fetch", "--binaries-from", "download", "kubelet")

"""What a run needs from the cache, as a part of a cache key."""

from __future__ import annotations

import pytest

from testbed.binaries import lock_for
from testbed.cli import cache_key

NEWEST = lock_for("1.37").kubernetes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], f"local-{NEWEST}-driver-workload"),
        (["--provider", "kind", "-k", "claims", "--keep", "always", "-n", "2"], f"kind-{NEWEST}-driver-workload"),
        (["--kubelet", "1.36"], f"local-{NEWEST}-{lock_for('1.36').kubernetes}-driver-workload"),
        (["--driver-image", "mine:1", "--workload-image", "mine:2"], f"local-{NEWEST}"),
    ],
)
def test_the_key_names_provider_versions_and_images(words: list[str], said: str) -> None:
    assert cache_key.cache_key(words) == said


@pytest.mark.parametrize("words", [["--kubernetes", "1.99"], ["--nonsense"], ["--config", "nowhere.yaml"]])
def test_arguments_that_run_refuses_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cache_key.main(words) == 2
    assert capsys.readouterr().out == ""


def test_help_has_no_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert cache_key.main(["--help"]) == 2
    assert "local-" not in capsys.readouterr().out

"""`bench up` takes down what it brought up, whatever happens to the measurement."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.bench import up
from testbed.errors import WaitTimeout
from testbed.models.config import TestbedConfig
from testbed.progress import Silent

CONFIG = TestbedConfig(name="measured")


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened to testbeds; none is really made."""
    steps: list[str] = []

    def bring_up(config: TestbedConfig, progress: Silent, **_: Any) -> None:
        with progress.step("cluster"):
            steps.append(f"up {config.name}")

    monkeypatch.setattr(up, "bring_up", bring_up)
    monkeypatch.setattr(up, "tear_down", lambda name, _progress: steps.append(f"down {name}"))
    return steps


def test_a_sample_has_the_whole_and_each_phase(done: list[str]) -> None:
    sample = up._sample(CONFIG, lambda: done.append("weighed"))
    assert list(sample) == ["up", "cluster", "down"]
    assert done == ["up measured", "weighed", "down measured"]


def test_a_testbed_that_cannot_be_weighed_is_taken_down_all_the_same(done: list[str]) -> None:
    def restless() -> None:
        raise WaitTimeout("the memory to settle", "idle: 5 s", "900 MiB and still changing")

    with pytest.raises(WaitTimeout, match="still changing"):
        up._sample(CONFIG, restless)
    assert done == ["up measured", "down measured"]

"""`bench up` measures each step, and tears down its testbed if the measurement fails."""

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
    """Fake `up` and `down`; return the list of what was done."""
    steps: list[str] = []

    def bring_up(config: TestbedConfig, progress: Silent, **_: Any) -> None:
        with progress.step("cluster"):
            steps.append(f"up {config.name}")

    monkeypatch.setattr(up, "bring_up", bring_up)
    monkeypatch.setattr(up, "tear_down", lambda name, _progress: steps.append(f"down {name}"))
    return steps


def test_a_sample_has_the_total_and_each_step(done: list[str]) -> None:
    sample = up._sample(CONFIG, lambda: done.append("measured memory"))
    assert list(sample) == ["up", "cluster", "down"]
    assert done == ["up measured", "measured memory", "down measured"]


def test_a_testbed_is_torn_down_if_the_measurement_fails(done: list[str]) -> None:
    def fail() -> None:
        raise WaitTimeout("the memory to stop changing", "idle: 5 s", "900 MiB and still changing")

    with pytest.raises(WaitTimeout, match="still changing"):
        up._sample(CONFIG, fail)
    assert done == ["up measured", "down measured"]

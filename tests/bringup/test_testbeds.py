from __future__ import annotations

from pathlib import Path

import pytest

from testbed.bringup import on_record, state, sweeping
from testbed.models.config import TestbedConfig
from testbed.progress import Silent


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path))


def test_a_cluster_on_record_is_in_use_until_its_user_is_done() -> None:
    with on_record(TestbedConfig(name="bench"), Silent()) as cluster:
        assert sweeping.in_use(cluster)
        assert state.names() == ["bench"]
    assert not sweeping.in_use(cluster)
    assert not cluster.parent.exists()


def test_a_cluster_on_record_is_taken_from_the_record_when_its_user_fails() -> None:
    with pytest.raises(RuntimeError), on_record(TestbedConfig(name="bench"), Silent()):
        raise RuntimeError
    assert state.names() == []

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.bringup import on_record, state, sweeping, testbeds
from testbed.errors import TestbedError
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


def test_a_cluster_that_does_not_come_is_explained_by_the_last_error_of_its_kubelet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TestbedConfig(name="dev", driver=None)
    (tmp_path / ".failed/dev").mkdir(parents=True)
    line = 'E1118 16:00:02.0 1 b.go:2] "cAdvisor" err="too many open files"'
    (tmp_path / ".failed/dev/node-1-kubelet.log").write_text(f"{line}\n")
    monkeypatch.setattr(testbeds, "_keep_logs", lambda _: tmp_path / ".failed/dev")
    record = testbeds._record(config, ephemeral=False)

    with pytest.raises(TestbedError) as told, testbeds._undone_on_failure(record, Silent()):
        raise TestbedError("0 of 1 nodes")

    assert any(line in note for note in told.value.__notes__)

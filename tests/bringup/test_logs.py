"""The logs of a testbed, and of an `up` that failed."""

from __future__ import annotations

import secrets
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.bringup import logs, state
from testbed.errors import UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty state folder."""
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path))
    return tmp_path


def _write(into: Path) -> None:
    (into / "etcd.log").write_text("hello\n")
    (into / "node-1/pods").mkdir(parents=True)
    (into / "node-1/pods/0.log").write_text("pod\n")


def test_the_logs_of_a_failed_up_are_kept_after_it_was_undone() -> None:
    state.keep_logs("dev", _write)

    with logs.collected("dev") as found:
        assert logs.listed(found) == ["etcd.log", "node-1/pods/0.log"]
        assert (logs.read(found, "etcd"), logs.read(found, "node-1/pods/0.log")) == ("hello\n", "pod\n")


def test_the_error_for_an_unknown_log_suggests_a_known_one() -> None:
    state.keep_logs("dev", _write)

    with logs.collected("dev") as found, pytest.raises(UsageError, match=r"did you mean etcd\.log"):
        logs.read(found, "etdc.log")


def test_the_name_of_a_log_cannot_be_a_path_outside_the_folder() -> None:
    state.keep_logs("dev", _write)

    with logs.collected("dev") as found, pytest.raises(UsageError, match="there is no log"):
        logs.read(found, "../../testbed.json")


def test_there_are_no_logs_of_an_unknown_testbed() -> None:
    with pytest.raises(UsageError, match="there is no testbed dev"), logs.collected("dev"):
        pass


def test_the_last_error_of_each_kubelet_is_found_in_plain_logs_and_journals(folder: Path) -> None:
    (folder / "worker").mkdir()
    early, late = (
        'E1118 16:00:01.0 1 a.go:1] "early"',
        'E1118 16:00:02.0 1 b.go:2] "cAdvisor" err="too many open files"',
    )
    (folder / "node-1-kubelet.log").write_text(f"{early}\n{late}\nI1118 16:00:03.0 1 c.go:3] bye\n")
    (folder / "worker/kubelet.log").write_text(f"Nov 18 16:00:02 worker kubelet[3]: {late}\n")
    (folder / "etcd.log").write_text(early)
    (folder / "node-2-kubelet.log").write_text("I1118 16:00:03.0 1 c.go:3] fine\n")

    assert logs.last_errors(folder) == [f"node-1-kubelet.log: {late}", f"worker/kubelet.log: {late}"]


def test_a_known_error_of_a_kubelet_is_not_repeated_and_a_long_one_is_cut_at_a_word(folder: Path) -> None:
    refused = 'failed to pull and unpack image "example.com/driver:1": failed to resolve reference: connection refused'
    quoted = refused.replace('"', r"\\\"")
    (folder / "node-1-kubelet.log").write_text(f'E1118 16:00:02.0 1 b.go:2] "Error syncing pod" err="{quoted}"\n')
    (folder / "node-2-kubelet.log").write_text(f"E1118 16:00:02.0 1 b.go:2] {'word ' * 100}\n")

    (other,) = logs.last_errors(folder, f"node-1: container driver ErrImagePull {refused}")
    assert other.startswith("node-2-kubelet.log")
    assert other.endswith(" word …")


def test_a_log_is_found_by_the_components_name_in_status_and_a_partial_name_gets_suggestions(
    folder: Path,
) -> None:
    for name in ("node-1-kubelet", "node-2-kubelet", "etcd"):
        (folder / f"{name}.log").write_text(f"{name}\n")

    assert logs.read(folder, "node-1/kubelet") == "node-1-kubelet\n"
    assert logs.read(folder, "control-plane/etcd") == "etcd\n"
    with pytest.raises(UsageError, match=r"did you mean node-1-kubelet\.log or node-2-kubelet\.log"):
        logs.read(folder, "kubelet")


def test_collected_logs_contain_neither_credentials_nor_links(tmp_path: Path) -> None:
    canary = secrets.token_hex(12)
    (tmp_path / "host").write_text("of the host\n")
    into = tmp_path / "into"
    into.mkdir()

    def write(folder: Path) -> None:
        (folder / "kubelet.log").write_text(f'I0101 main.go:1] "FLAG" --bootstrap-token="{canary}" x\n')
        (folder / "link.log").symlink_to(tmp_path / "host")

    cluster: Any = SimpleNamespace(collect_logs=write)
    logs.collect(cluster, into)
    assert logs.listed(into) == ["kubelet.log"]
    assert canary not in (into / "kubelet.log").read_text()


def test_a_link_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "host").write_text("of the host\n")
    (tmp_path / "link.log").symlink_to(tmp_path / "host")
    assert logs.listed(tmp_path) == []

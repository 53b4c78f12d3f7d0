"""Frozen cgroups of a testbed are thawed, and no others."""

from __future__ import annotations

from pathlib import Path

from testbed.providers.cgroup_freezer import thaw


def cgroup(root: Path, path: str, state: str) -> Path:
    folder = root / path
    folder.mkdir(parents=True)
    (folder / "freezer.state").write_text(f"{state}\n")
    return folder


def test_cgroups_below_the_named_one_are_thawed_and_no_others(tmp_path: Path) -> None:
    frozen = cgroup(tmp_path, "docker/abc/pod/container", "FROZEN")
    freezing = cgroup(tmp_path, "docker/abc/pod/other", "FREEZING")
    cgroup(tmp_path, "docker/abc/pod/running", "THAWED")
    foreign = cgroup(tmp_path, "docker/abcd", "FROZEN")

    assert thaw("abc", tmp_path) == [frozen, freezing]
    assert (frozen / "freezer.state").read_text() == "THAWED"
    assert (foreign / "freezer.state").read_text() == "FROZEN\n"


def test_a_host_without_a_freezer_has_nothing_to_thaw(tmp_path: Path) -> None:
    assert thaw("abc", tmp_path / "none") == []

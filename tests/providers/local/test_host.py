"""The problems that prevent a host from running a testbed, with their cures."""

import dataclasses
from pathlib import Path

import pytest

from testbed.providers.local.host import Host, cgroup_version, detect, has_overlay

GOOD = Host(
    linux=True,
    root=True,
    capabilities=2**41 - 1,
    cgroup_version=2,
    cgroup_writable=True,
    overlay=True,
    kernel=(6, 1),
    missing_tools=(),
)


def test_an_ordinary_host_has_no_problems_and_no_remarks() -> None:
    assert (GOOD.problems(), GOOD.remarks()) == ([], [])


def test_everything_that_is_missing_is_a_problem_with_a_cure() -> None:
    lacking = {
        "Linux": dataclasses.replace(GOOD, linux=False),
        "root": dataclasses.replace(GOOD, root=False),
        "CAP_NET_ADMIN": dataclasses.replace(GOOD, capabilities=1 << 21),
        "cgroup": dataclasses.replace(GOOD, cgroup_writable=False),
        "no cgroups are mounted": dataclasses.replace(GOOD, cgroup_version=0),
        "ip is not installed": dataclasses.replace(GOOD, missing_tools=("ip",)),
    }

    for word, host in lacking.items():
        (problem,) = host.problems()
        assert word in problem.what
        assert problem.cure


def test_what_is_not_needed_is_a_remark_and_not_fatal() -> None:
    poor = dataclasses.replace(GOOD, overlay=False, cgroup_version=1, capabilities=(2**41 - 1) & ~(1 << 24))

    assert poor.problems() == []
    assert len(poor.remarks()) == 3
    assert not any(remark.fatal for remark in poor.remarks())


def test_this_host_can_be_examined() -> None:
    assert detect().linux


def kernel(root: Path, *, filesystems: str, modules: str | None, disabled: str = "0") -> Path:
    (root / "proc/sys/kernel").mkdir(parents=True)
    (root / "proc/filesystems").write_text(filesystems)
    (root / "proc/sys/kernel/modules_disabled").write_text(f"{disabled}\n")
    if modules is not None:
        (root / "lib/modules/6.1.0").mkdir(parents=True)
        (root / "lib/modules/6.1.0/modules.dep").write_text(modules)
    return root


@pytest.mark.parametrize("module", ["kernel/fs/overlayfs/overlay.ko:\n", "kernel/fs/overlayfs/overlay.ko.zst:\n"])
def test_an_overlay_module_that_is_not_loaded_yet_counts(tmp_path: Path, module: str) -> None:
    assert has_overlay("6.1.0", kernel(tmp_path, filesystems="\text4\n", modules=module))


def test_an_overlay_that_is_built_in_needs_no_module(tmp_path: Path) -> None:
    assert has_overlay("6.1.0", kernel(tmp_path, filesystems="nodev\toverlay\n", modules=None, disabled="1"))


def test_a_kernel_without_overlay_is_detected(tmp_path: Path) -> None:
    assert not has_overlay("6.1.0", kernel(tmp_path, filesystems="\text4\n", modules="kernel/fs/ext4/ext4.ko:\n"))


def test_without_access_to_the_modules_there_is_no_overlay(tmp_path: Path) -> None:
    assert not has_overlay("6.1.0", kernel(tmp_path, filesystems="\text4\n", modules=None))


def test_a_module_that_must_not_be_loaded_does_not_count(tmp_path: Path) -> None:
    module = "kernel/fs/overlayfs/overlay.ko:\n"

    assert not has_overlay("6.1.0", kernel(tmp_path, filesystems="\text4\n", modules=module, disabled="1"))


def test_the_version_of_cgroups_is_detected(tmp_path: Path) -> None:
    assert cgroup_version(tmp_path) == 0

    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/cgroup.procs").touch()
    assert cgroup_version(tmp_path) == 1

    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    assert cgroup_version(tmp_path) == 2

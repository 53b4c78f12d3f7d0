"""The probe of a driver file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.driver.files import FULL, load, refusal


def test_the_probe_finds_every_device_in_the_output(folder: Path) -> None:
    output = "HOME=/\nGPU_DEVICE_gpu_1_UUID=b\nGPU_DEVICE_gpu_0_UUID=a\nXGPU_DEVICE_gpu_0_UUID=c\n"

    assert load(folder, FULL).probe.ids(output) == ("a", "b")


def test_a_probe_that_shows_names_needs_no_attribute(folder: Path) -> None:
    by_name = FULL.replace("?P<id>", "?P<name>").replace("    identity: {attribute: uuid, scope: cluster}\n", "")
    found = load(folder, by_name)

    assert found.probe.shows_names
    assert found.probe.ids("GPU_DEVICE_gpu_1_UUID=gpu-1\n") == ("gpu-1",)
    assert "identity" not in found.features
    assert "identity" in load(folder, FULL).features


@pytest.mark.parametrize(
    "kind",
    [
        "deviceNode: '/dev/a(?P<name>.)'",
        "mount: '/a/(?P<id>.)'",
        "networkInterface: '(?P<name>n.)'",
        "cpuset: true",
        "metadata: true",
    ],
)
def test_a_kind_of_probe_that_this_version_lacks_is_refused(folder: Path, kind: str) -> None:
    lines = next(line for line in FULL.splitlines() if "lines:" in line)
    key = kind.partition(":")[0]
    message = f"spec.probe.{key}: is not supported by this version; use command and lines, or env"
    assert message in refusal(folder, f"    command: [env]\n{lines}", f"    {kind}")


def test_a_probe_of_environment_variables_runs_env(folder: Path) -> None:
    lines = next(line for line in FULL.splitlines() if "lines:" in line)
    probe = load(folder, FULL.replace(f"    command: [env]\n{lines}", r"    env: '^GPU_(?P<id>\S+)='")).probe
    assert probe.argv == ("env",)
    assert probe.ids("PATH=/bin\nGPU_b=1\nGPU_a=1\n") == ("a", "b")


def test_a_match_without_the_group_shows_no_device(folder: Path) -> None:
    lines = next(line for line in FULL.splitlines() if "lines:" in line)
    probe = load(folder, FULL.replace(f"    command: [env]\n{lines}", r"    env: '^(?:GPU=(?P<id>\S+)|HOME=)'")).probe
    assert probe.ids("HOME=/root\nGPU=a\n") == ("a",)

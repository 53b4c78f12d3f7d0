"""The probe of a driver file."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed import process
from testbed.models.driver.probe import Probe
from tests.models.driver.files import FULL, load


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


KINDS = {
    "deviceNode: '^/dev/acme(?P<name>.)$'": ("/dev/null\n/dev/acme1\n/dev/acme0\n", ("0", "1")),
    "mount: '^/opt/acme/(?P<id>.+)$'": ("/\n/opt/acme/a-1\n", ("a-1",)),
    "networkInterface: '^(?P<name>nic.)$'": ("eth0\nlo\nnic3\n", ("nic3",)),
    "cpuset: true": ("Cpus_allowed_list:\t0-2,8\n", ("0", "1", "2", "8")),
    "{command: [smi], lines: '^(?P<count>\\d+) GPUs'}": ("2 GPUs\n1 GPUs\n", ("0", "1", "2")),
    "{command: [smi], lines: '^GPUs (?P<set>.+)'}": ("GPUs a,3-4\n", ("3", "4", "a")),
    "{command: [smi]}": ("anything\n\nexit code 0\n", ("0",)),
}


def _with_probe(folder: Path, probe: str) -> Probe:
    text = probe if probe.startswith("{") else f"{{{probe}}}"
    return load(folder, f"{FULL[: FULL.index('  probe:')]}  probe: {text}\n").probe


@pytest.mark.parametrize("kind", KINDS)
def test_what_each_kind_of_probe_finds(folder: Path, kind: str) -> None:
    output, found = KINDS[kind]
    assert _with_probe(folder, kind).ids(output) == found


@pytest.mark.parametrize("kind", ["env", "deviceNode", "mount", "networkInterface", "cpuset", "metadata"])
def test_each_kind_has_a_command_that_runs(folder: Path, kind: str) -> None:
    probe = _with_probe(folder, f"{kind}: {'true' if kind in ('cpuset', 'metadata') else repr('(?P<set>.+)')}")
    done = process.run(probe.argv, check=False)
    assert done.stderr == ""
    if kind != "metadata":
        assert probe.ids(done.stdout)


@pytest.mark.parametrize("code", [0, 3])
def test_an_exit_code_is_an_answer(folder: Path, code: int) -> None:
    probe = _with_probe(folder, f"{{command: [sh, -c, 'echo found; exit {code}']}}")
    done = process.run(probe.argv, check=False)
    assert done.code == code
    assert probe.ids(done.stdout) == (() if code else ("0",))


def test_a_range_that_is_no_range_stays_text(folder: Path) -> None:
    probe = _with_probe(folder, "env: '^A=(?P<set>.+)$'")
    assert probe.ids("A=5-3,0-99999999,pci-1\n") == ("0-99999999", "5-3", "pci-1")


def test_containers_without_a_claim_may_have_a_probe_of_their_own(folder: Path) -> None:
    assert _with_probe(folder, "{cpuset: true, without: {command: [a]}}").of_others.command == ("a",)
    alone = _with_probe(folder, "cpuset: true")
    assert alone.of_others is alone


def test_a_probe_of_environment_variables_runs_env(folder: Path) -> None:
    lines = next(line for line in FULL.splitlines() if "lines:" in line)
    probe = load(folder, FULL.replace(f"    command: [env]\n{lines}", r"    env: '^GPU_(?P<id>\S+)='")).probe
    assert probe.argv == ("env",)
    assert probe.ids("PATH=/bin\nGPU_b=1\nGPU_a=1\n") == ("a", "b")


def test_a_match_without_the_group_shows_no_device(folder: Path) -> None:
    lines = next(line for line in FULL.splitlines() if "lines:" in line)
    probe = load(folder, FULL.replace(f"    command: [env]\n{lines}", r"    env: '^(?:GPU=(?P<id>\S+)|HOME=)'")).probe
    assert probe.ids("HOME=/root\nGPU=a\n") == ("a",)

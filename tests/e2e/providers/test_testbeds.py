"""Testbeds through the command line: in parallel, twice in a row, interrupted, killed, and on an overlay file system."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed import folders
from testbed.bringup import bring_up, tear_down
from testbed.models.config import effective
from testbed.progress import Silent
from testbed.waiting import Budget, eventually_true

CI = Path(__file__).parents[3] / "ci"
TESTBED = [sys.executable, "-m", "testbed.cli.main"]
MOMENT = Budget("a moment", 30, "until the interrupted command has written its record")


def dra(*argv: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run dra-testbed as a user does."""
    return subprocess.run([*TESTBED, *argv], capture_output=True, text=True, timeout=timeout, check=False)


def restore_interrupts() -> None:
    """Let SIGINT have its effect, as at a terminal. A background process of a shell inherits that it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def snapshot(verb: str, file: Path) -> subprocess.CompletedProcess[str]:
    """Run the independent snapshot of this host."""
    return subprocess.run(
        [sys.executable, CI / "host_snapshot.py", verb, file], capture_output=True, text=True, check=False
    )


@pytest.fixture
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """Check that the test leaves nothing on this host."""
    snapshot("snapshot", tmp_path / "before")
    yield
    left = snapshot("compare", tmp_path / "before")
    assert left.returncode == 0, left.stdout


@pytest.mark.usefixtures("nothing_left")
def test_up_status_down_with_the_fake_driver() -> None:
    up = dra("up", "--name", "plain")
    status = json.loads(dra("status", "--name", "plain", "-o", "json").stdout)
    again = dra("up", "--name", "plain")
    down, twice = dra("down", "--name", "plain"), dra("down", "--name", "plain")

    assert up.returncode == 0, up.stderr
    assert status["phase"] == "ready"
    assert status["driver"]["nodesWithSlices"] == ["node-1", "node-2"]
    assert (again.returncode, "already" in again.stderr) == (2, True)
    assert (down.returncode, twice.returncode) == (0, 0)


@pytest.mark.usefixtures("nothing_left")
def test_two_testbeds_come_up_in_parallel_and_are_removed_separately() -> None:
    ups = [
        subprocess.Popen([*TESTBED, "up", "--name", name, "--nodes", "1"], stderr=subprocess.PIPE, text=True)
        for name in ("left", "right")
    ]
    output = [up.communicate(timeout=300)[1] for up in ups]
    dra("down", "--name", "left")
    other = json.loads(dra("status", "--name", "right", "-o", "json").stdout)
    dra("down", "--name", "right")

    assert [up.returncode for up in ups] == [0, 0], output
    assert (other["phase"], other["problems"]) == ("ready", [])


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_up_removes_everything_itself(number: signal.Signals) -> None:
    up = subprocess.Popen(
        [*TESTBED, "up", "--name", "stopped"], stderr=subprocess.PIPE, text=True, preexec_fn=restore_interrupts
    )
    record = folders.state() / "stopped/cluster/cluster.json"
    assert eventually_true(record.exists, MOMENT)
    up.send_signal(number)
    output = up.communicate(timeout=60)[1]

    assert up.returncode == 128 + number, output
    assert "Traceback" not in output


def test_sweep_removes_what_a_killed_up_left() -> None:
    rounds = subprocess.run(
        [sys.executable, CI / "kill_and_sweep.py", "5"], capture_output=True, text=True, check=False
    )

    assert rounds.returncode == 0, rounds.stdout + rounds.stderr


@pytest.mark.usefixtures("nothing_left")
def test_the_next_up_removes_what_a_killed_one_left() -> None:
    up = subprocess.Popen([*TESTBED, "up", "--name", "reborn"], stderr=subprocess.DEVNULL)
    assert eventually_true((folders.state() / "reborn/cluster/cluster.json").exists, MOMENT)
    up.kill()
    up.wait()
    again = dra("up", "--name", "reborn", "--driver", "none")
    dra("down", "--name", "reborn")

    assert again.returncode == 0, again.stderr


@pytest.mark.usefixtures("nothing_left")
def test_sweep_keeps_a_testbed_that_is_in_use() -> None:
    dra("up", "--name", "used", "--driver", "none", "--nodes", "1")
    dra("sweep")
    status = json.loads(dra("status", "--name", "used", "-o", "json").stdout)
    dra("down", "--name", "used")

    assert (status["phase"], status["problems"]) == ("ready", [])


@pytest.mark.usefixtures("nothing_left")
def test_a_failed_step_reports_the_last_observation_and_keeps_the_logs(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    broken = programs / "kube-apiserver"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo Kubernetes v1.37.1 && exit\necho the disk is made of cheese >&2\nexit 1\n'
    )
    broken.chmod(0o755)
    up = dra("up", "--name", "broken", "--binaries-from", str(programs), "--driver", "none")
    logs = dra("logs", "--name", "broken", "kube-apiserver")

    assert up.returncode == 3
    assert "kube-apiserver" in up.stderr
    assert "made of cheese" in up.stderr
    assert "made of cheese" in logs.stdout


@pytest.mark.usefixtures("nothing_left")
def test_a_state_folder_on_an_overlay_gets_nodes_with_a_reduced_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The root of a Docker container is an overlay, which cannot hold another one. A node's files still survive its reboot."""
    for part in ("lower", "upper", "work", "state"):
        (tmp_path / part).mkdir()
    layers = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    subprocess.run(["mount", "-t", "overlay", "test", "-o", layers, tmp_path / "state"], check=True)
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "state"))
    try:
        made: Any = bring_up(effective(None, {"name": "flat", "nodes": 1}), Silent(), ephemeral=True).cluster
        result = made.node("node-1").run("sh", "-c", "touch /usr/x; touch /opt/kept && stat -f -c %T /", check=False)
        made.reboot("node-1")
        kept = made.node("node-1").run("ls", "/opt/kept", check=False)
        tear_down("flat", Silent())
    finally:
        subprocess.run(["umount", tmp_path / "state"], check=True)

    assert result.stdout == "tmpfs\n"
    assert "Read-only" in result.stderr
    assert kept.ok

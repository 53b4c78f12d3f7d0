"""`dra-testbed run` from end to end: a right driver conforms, a wrong one fails by name, an interrupted run is not green."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from testbed import folders
from testbed.waiting import Budget, eventually_true

RUN = [sys.executable, "-m", "testbed.cli.main", "run"]
MUTANT = folders.data("manifests") / "drivers/mutants/fake-gpu-shares-one-device.yaml"
STARTED = Budget("suites started", 60, "a whole up comes before them")


def hears_signals() -> None:
    """As at a terminal. A shell starts what it puts in the background deaf to SIGINT, nohup to SIGHUP, and that is inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def verdicts(report: Path) -> dict[str, str]:
    """What the report says of each requirement."""
    content = yaml.safe_load((report / "report.yaml").read_text())
    return {each["id"]: each["verdict"] for each in content["requirements"]}


def dra_run(report: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run it as a user would."""
    return subprocess.run(
        [*RUN, "--report", str(report), *argv], capture_output=True, text=True, timeout=300, check=False
    )


def test_the_fake_driver_conforms_as_far_as_it_was_asked(tmp_path: Path) -> None:
    """A selection; `tox -e e2e` judges by the whole profile."""
    done = dra_run(tmp_path / "report", "-k", "from_one_template or starts_on_every_node or two_pods_share_one_claim")

    assert done.returncode == 0, done.stdout + done.stderr
    found = verdicts(tmp_path / "report")
    assert {found[each] for each in ("CLAIM-001", "REG-001", "SHARE-001")} == {"pass"}
    assert set(found.values()) == {"pass", "excluded"}
    assert ElementTree.parse(tmp_path / "report/junit.xml").getroot() is not None


def test_a_driver_that_gives_everybody_the_same_device_fails_the_requirement_about_it(tmp_path: Path) -> None:
    done = dra_run(tmp_path / "report", "--driver", str(MUTANT), "-k", "two_claims_from_one_template")

    assert done.returncode == 1, done.stdout + done.stderr
    assert verdicts(tmp_path / "report")["CLAIM-001"] == "fail"
    assert list((tmp_path / "report/evidence/CLAIM-001").iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("event", ["testbed-wanted", "test-started"])
def test_an_interrupted_run_removes_its_testbed_and_is_never_green(
    tmp_path: Path, number: signal.Signals, event: str
) -> None:
    report = tmp_path / "report"
    running = subprocess.Popen(
        [*RUN, "--report", str(report)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=hears_signals,
    )
    log = report / "events.jsonl"
    assert eventually_true(lambda: log.exists() and event in log.read_text(), STARTED)
    running.send_signal(number)
    said = running.communicate(timeout=120)[0]

    assert running.returncode == (4 if event == "test-started" else 128 + number), said
    content = yaml.safe_load((report / "report.yaml").read_text())
    assert (content["finished"], content["result"]) == (False, "incomplete")
    assert not (folders.state() / content["environment"]["testbed"]).exists(), said

"""`dra-testbed run` from end to end: with a correct driver, with a mutant, and interrupted."""

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
STARTED = Budget("suites started", 60, "the testbed comes up before")


def restore_signals() -> None:
    """Restore the default handlers, as at a terminal: background jobs of a shell inherit an ignored SIGINT, nohup an ignored SIGHUP."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def verdicts(report: Path) -> dict[str, str]:
    """Return the verdict of each requirement in the report."""
    content = yaml.safe_load((report / "report.yaml").read_text())
    return {each["id"]: each["verdict"] for each in content["requirements"]}


def dra_run(report: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run `dra-testbed run` as a user would."""
    return subprocess.run(
        [*RUN, "--report", str(report), *argv], capture_output=True, text=True, timeout=300, check=False
    )


def test_the_fake_driver_passes_the_selected_tests(tmp_path: Path) -> None:
    """Run a selection of the tests; `tox -e e2e` runs a whole profile."""
    done = dra_run(tmp_path / "report", "-k", "from_one_template or starts_on_every_node or two_pods_share_one_claim")

    assert done.returncode == 0, done.stdout + done.stderr
    found = verdicts(tmp_path / "report")
    assert {found[each] for each in ("CLAIM-001", "REG-001", "SHARE-001")} == {"pass"}
    assert set(found.values()) == {"pass", "excluded"}
    assert ElementTree.parse(tmp_path / "report/junit.xml").getroot() is not None


def test_a_driver_that_gives_all_claims_the_same_device_fails_that_requirement(tmp_path: Path) -> None:
    done = dra_run(tmp_path / "report", "--driver", str(MUTANT), "-k", "two_claims_from_one_template")

    assert done.returncode == 1, done.stdout + done.stderr
    assert verdicts(tmp_path / "report")["CLAIM-001"] == "fail"
    assert list((tmp_path / "report/evidence/CLAIM-001").iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("event", ["testbed-wanted", "test-started"])
def test_an_interrupted_run_removes_its_testbed_and_is_incomplete(
    tmp_path: Path, number: signal.Signals, event: str
) -> None:
    report = tmp_path / "report"
    running = subprocess.Popen(
        [*RUN, "--report", str(report)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=restore_signals,
    )
    log = report / "events.jsonl"
    assert eventually_true(lambda: log.exists() and event in log.read_text(), STARTED)
    running.send_signal(number)
    output = running.communicate(timeout=120)[0]

    assert running.returncode == (4 if event == "test-started" else 128 + number), output
    content = yaml.safe_load((report / "report.yaml").read_text())
    assert (content["finished"], content["result"]) == (False, "incomplete")
    assert not (folders.state() / content["environment"]["testbed"]).exists(), output

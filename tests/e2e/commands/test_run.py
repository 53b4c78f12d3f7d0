"""`dra-testbed run` from end to end: with a correct driver, with a mutant, and interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from ci import find_canaries
from testbed import folders
from testbed.redaction import MARK
from testbed.waiting import Budget, eventually_true
from tests.e2e.commands.canaries import Canaries

RUN = [sys.executable, "-m", "testbed.cli.main", "run"]
STARTED = Budget("suites started", 60, "the testbed comes up before")


def restore_signals() -> None:
    """Restore the default handlers, as at a terminal: background jobs of a shell inherit an ignored SIGINT, nohup an ignored SIGHUP."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def verdicts(report: Path) -> dict[str, str]:
    """Return the verdict of each requirement in the report."""
    content = yaml.safe_load((report / "report.yaml").read_text())
    return {each["id"]: each["verdict"] for each in content["requirements"]}


def dra_run(report: Path, *argv: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `dra-testbed run` as a user would."""
    words, env = [*RUN, "--report", str(report), *argv], {**os.environ, **variables}
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, env=env)


def test_the_fake_driver_passes_the_selected_tests(tmp_path: Path) -> None:
    """Run a selection of the tests; `tox -e e2e` runs a whole profile."""
    done = dra_run(tmp_path / "report", "-k", "from_one_template or starts_on_every_node or two_pods_share_one_claim")

    assert done.returncode == 0, done.stdout + done.stderr
    found = verdicts(tmp_path / "report")
    assert {found[each] for each in ("CLAIM-001", "REG-001", "SHARE-001")} == {"pass"}
    assert set(found.values()) == {"pass", "excluded", "not-applicable"}
    exempt_only = {name for name, verdict in found.items() if verdict == "not-applicable"}
    assert all(each.startswith("EXEMPT-") for each in exempt_only)  # the fake driver needs no exemption
    assert ElementTree.parse(tmp_path / "report/junit.xml").getroot() is not None


@dataclass(frozen=True)
class FailedRun:
    """A run with a wrong driver, the canaries in it, and the folder with all that it wrote."""

    code: int
    output: str
    canaries: Canaries
    artifacts: Path

    def has_redacted(self, pattern: str) -> bool:
        """Return True if a credential was removed from an artifact whose path matches."""
        return any(MARK in each.read_text() for each in self.artifacts.rglob(pattern) if each.is_file())


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> FailedRun:
    """Run a driver that fails, in an environment full of credentials."""
    canaries, artifacts = Canaries(), tmp_path_factory.mktemp("artifacts")
    driver = canaries.driver_file(tmp_path_factory.mktemp("driver"))
    argv = ["--driver", str(driver), "-k", "two_claims_from_one_template"]
    done = dra_run(artifacts / "report", *argv, CI_JOB_TOKEN=canaries.harness)
    (artifacts / "output.txt").write_text(done.stdout + done.stderr)
    return FailedRun(done.returncode, done.stdout + done.stderr, canaries, artifacts)


def test_a_driver_that_gives_all_claims_the_same_device_fails_that_requirement(failed: FailedRun) -> None:
    assert failed.code == 1, failed.output
    assert verdicts(failed.artifacts / "report")["CLAIM-001"] == "fail"
    assert list((failed.artifacts / "report/evidence/CLAIM-001").iterdir())


def test_no_artifact_of_a_failed_run_contains_a_credential(failed: FailedRun) -> None:
    assert find_canaries.main([str(failed.artifacts), *failed.canaries.all]) == 0


@pytest.mark.parametrize("pattern", ["pods.yaml", "resourceclaims.yaml", "events.txt", "logs/*", "probe/*", "driver/*"])
def test_the_credentials_were_in_the_evidence(failed: FailedRun, pattern: str) -> None:
    """The control of the test above: something had to be removed."""
    assert failed.has_redacted(pattern)


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

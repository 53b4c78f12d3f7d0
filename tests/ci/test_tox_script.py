"""ci/tox, with a tox that only writes an artifact."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ci.check_workflows import ROOT
from testbed import process
from testbed.process import Completed
from tests.ci.conftest import Host


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "checkout/ci").mkdir(parents=True)
    for name in ("tox", "find_canaries.py"):
        shutil.copy(ROOT / "ci" / name, tmp_path / "checkout/ci")
    return tmp_path / "checkout"


def run(host: Host, checkout: Path, tox: str) -> Completed:
    host.has("pip", "")
    host.has("tox", f"mkdir -p .tox/e2e/tmp/report .tox/unit/tmp; {tox}")
    made = f'mkdir -p "$3/bin"; cp {host.programs}/pip {host.programs}/tox "$3/bin"'
    host.has("python3", f'[ "$2" != venv ] && exec {host.python} "$@"; {made}')
    return process.run([checkout / "ci/tox", "-e", "e2e"], check=False)


def test_an_artifact_with_a_credential_of_the_environment_fails(host: Host, checkout: Path) -> None:
    done = run(host, checkout, 'echo "the token is $DRA_TESTBED_CANARY_TOKEN" >.tox/e2e/tmp/report/log')

    assert (done.code, done.stdout) == (1, ".tox/e2e/tmp/report/log contains a canary\n")


@pytest.mark.parametrize("code", [0, 1, 3])
def test_otherwise_the_exit_code_is_that_of_tox(host: Host, checkout: Path, code: int) -> None:
    done = run(host, checkout, f'echo "called with $@" >.tox/e2e/tmp/report/log; exit {code}')

    assert done.code == code
    assert (checkout / ".tox/e2e/tmp/report/log").read_text() == "called with -e e2e\n"


def test_each_run_has_a_random_credential_that_the_tests_can_see(host: Host, checkout: Path) -> None:
    first, second = (run(host, checkout, "printenv DRA_TESTBED_CANARY_TOKEN").stdout for _ in range(2))

    assert len(first.strip()) == 24
    assert first != second

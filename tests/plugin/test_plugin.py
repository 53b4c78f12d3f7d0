from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.conformance import events, facts, report_folder, selection
from testbed.models.run_request import RunRequest
from testbed.runs.pytest_process import plugin_options, run_suites
from tests.fakes import cluster

Judge = Callable[..., Any]
ROOT = Path(__file__).parents[2]
_REQUIRED = """
from testbed.conformance import requirement, MUST, E2E

@requirement("T-001", "It works.", level=MUST, tier=E2E, source="here")
def test_it(scenario):
    pass
"""


def _run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(*plugin_options(), *arguments, timeout=60)


def test_the_plugin_changes_nothing_in_other_projects(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys, pytest

        @pytest.fixture
        def driver():
            return "a browser"

        def test_own_fixture(driver):
            assert driver == "a browser"

        def test_nothing_was_loaded():
            ours = {name for name in sys.modules if name.split(".")[0] == "testbed"}
            assert ours == {"testbed", "testbed.plugin"}

        def test_no_fixture_of_ours(request):
            with pytest.raises(pytest.FixtureLookupError):
                request.getfixturevalue("scenario")
        """
    )
    result = _run(pytester, "--strict-markers", "-W", "error")
    result.assert_outcomes(passed=3)
    assert "dra" not in _run(pytester, "--markers").stdout.str()


def test_without_a_testbed_the_suites_say_what_is_missing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_REQUIRED)
    result = _run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*add --testbed NAME, or use `dra-testbed run`*"])


def test_collecting_needs_no_testbed_and_knows_the_markers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_REQUIRED)
    result = _run(pytester, "--collect-only", "-q", "-m", "e2e and must", "--strict-markers")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*::test_it"])


def test_a_driver_without_a_testbed_is_refused(pytester: pytest.Pytester) -> None:
    result = _run(pytester, "--driver", "my.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*add --testbed NAME*"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tier", "e3e"], "did you mean e2e?"),
        (["--patience", "0"], "--patience: is 0.0, but must be more than 0"),
        (["--driver", "missing.yaml"], "missing.yaml"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(judge: Judge, arguments: list[str], said: str) -> None:
    run = judge("@required(1)\ndef test_it():\n    pass\n", *arguments)
    assert run.result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in run.output
    assert not run.folder.exists()


def test_a_report_folder_that_another_run_uses_is_refused(judge: Judge, pytester: pytest.Pytester) -> None:
    with report_folder.reserve(pytester.path / "out"):
        run = judge("@required(1)\ndef test_it():\n    pass\n")
    assert run.result.ret == pytest.ExitCode.USAGE_ERROR
    assert "another run is writing its report" in run.output
    assert not (run.folder / events.FILE).exists()


def test_pytest_may_write_into_the_folder_that_its_parent_reserved(judge: Judge, pytester: pytest.Pytester) -> None:
    judge("@required(1)\ndef test_it():\n    pass\n")  # writes the files of the suite, and a first report
    folder = pytester.path / "out"
    request = RunRequest(testbed="fake", report=folder, patience=0.001, tests=(str(pytester.path),))
    with report_folder.reserve(folder):
        assert run_suites(request).result == "conformant"


def test_text_that_is_no_run_request_is_refused(pytester: pytest.Pytester) -> None:
    result = _run(pytester, "--run-request={}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--run-request is not a run request*"])


@pytest.mark.parametrize("workers", ["auto", "2"])
def test_the_controller_looks_at_the_testbed_once(judge: Judge, monkeypatch: pytest.MonkeyPatch, workers: str) -> None:
    gathered: list[object] = []
    gather = facts.gather

    def counted(*words: Any) -> selection.Facts:
        gathered.append(words)
        return gather(*words)

    monkeypatch.setattr(facts, "gather", counted)
    assert judge("@required(1)\ndef test_it():\n    pass\n", "-n", workers).report.result == "conformant"
    assert len(gathered) == 1


def test_a_driver_file_that_does_not_fit_the_testbed_is_refused_before_any_test(judge: Judge, tmp_path: Path) -> None:
    file = tmp_path / "driver.yaml"
    said = yaml.safe_load(cluster.driver_path().read_text())
    del said["spec"]["install"], said["spec"]["companions"]
    file.write_text(yaml.safe_dump(said).replace("- gpu.", "- gpus."))
    run = judge("@required(1)\ndef test_it():\n    pass\n", "--driver", str(file))
    assert run.result.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        "spec.devices.classes[0]: the cluster has no DeviceClass gpus.dra-testbed.example; did you mean" in run.output
    )


def test_a_driver_file_that_is_shipped_is_named_as_in_dra_testbed_run(judge: Judge) -> None:
    run = judge("@required(1)\ndef test_it():\n    pass\n", "--driver", "fake-gpu")
    assert run.report.subject.driver_file == "fake-gpu"
    assert "did you mean fake-gpu" in judge("def test_it():\n    pass\n", "--driver", "fake-gpus").output


def test_a_testbed_that_does_not_exist_is_refused(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRA_TESTBED_STATE", str(pytester.path / "state"))
    result = _run(pytester, "--testbed", "nobody")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is no testbed nobody*"])


@pytest.fixture
def suites(pytester: pytest.Pytester) -> Path:
    """Return the folder of suites with their own settings, in a project with other settings and a report folder."""
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    folder = pytester.mkdir("suites")
    for name, text in (("upstream.yaml", ""), ("pytest.ini", "[pytest]\n"), ("test_suite.py", _REQUIRED)):
        (folder / name).write_text(text)
    pytester.mkdir("rep")
    return folder


def test_a_folder_after_an_option_must_not_change_the_settings(pytester: pytest.Pytester, suites: Path) -> None:
    apart = _run(pytester, "suites", "--testbed", "nobody", "--report", "rep")
    assert apart.ret == pytest.ExitCode.USAGE_ERROR
    apart.stderr.fnmatch_lines([f"*settings of {pytester.path}/pyproject.toml and not those of {suites}*--report=DIR*"])
    together = _run(pytester, "suites", "--testbed", "nobody", "--report=rep")
    together.stderr.fnmatch_lines(["*there is no testbed nobody*"])


def test_a_test_id_in_the_wrong_folder_is_refused_with_its_path(pytester: pytest.Pytester) -> None:
    result = _run(pytester, "sharing/test_consumers.py::test_it", "--testbed", "nobody")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*there is no sharing/test_consumers.py here*/suites/sharing/test_consumers.py::test_it"]
    )


def test_a_requirement_id_selects_its_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_REQUIRED)
    assert _run(pytester, "--collect-only", "-q", "-k", "T-001").ret == 0
    assert _run(pytester, "--collect-only", "-q", "-k", "T-002").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_method_cannot_be_a_requirement(judge: Judge) -> None:
    run = judge("class TestIt:\n    @required(1)\n    def test_it(self):\n        pass\n")
    assert "must be checked by a function, not by a method" in run.output
    assert run.result.ret != 0


def test_two_tests_with_the_same_requirement_id_are_refused(judge: Judge) -> None:
    run = judge("@required(1)\ndef test_a():\n    pass\n\n@required(1)\ndef test_b():\n    pass\n")
    assert "T-001 is used twice" in run.output
    assert run.result.ret != 0


def test_long_tracebacks_can_be_requested(judge: Judge) -> None:
    run = judge("@required(1)\ndef test_it():\n    number = 1\n    assert number == 2\n", "--tb=long")
    assert "number = 1" in run.output


def test_the_plugin_module_imports_nothing_but_pytest() -> None:
    from testbed import process  # noqa: PLC0415 - only here

    code = "import sys, testbed.plugin; print([m for m in sys.modules if m.startswith('testbed.')])"
    assert process.run([sys.executable, "-c", code], cwd=ROOT).stdout.strip() == "['testbed.plugin']"


@pytest.mark.parametrize("words", [("-k", "foo and ("), ("--no-such-option",)])
def test_wrong_usage_prints_only_its_reason_and_keeps_the_report_of_an_earlier_run(
    judge: Judge, words: tuple[str, ...]
) -> None:
    tests = "@required(1)\ndef test_it():\n    pass\n"
    before = (judge(tests).folder / "report.yaml").read_text()
    run = judge(tests, *words)
    assert run.result.ret == pytest.ExitCode.USAGE_ERROR
    assert "verdict" not in run.output
    assert (run.folder / "report.yaml").read_text() == before
    assert run.report.result == "conformant"


_REPORTED = "(pytestconfig.rootpath / 'out/report.yaml').read_text()"


def test_a_session_has_an_incomplete_report_from_its_beginning(judge: Judge) -> None:
    assert judge("@required(1)\ndef test_it():\n    pass\n").report.finished
    looks = f"@required(1)\ndef test_it(pytestconfig):\n    print({_REPORTED})\n"
    run = judge(looks, "-s")
    assert "finished: false" in run.output
    assert "result: incomplete" in run.output
    assert "- id: T-001" in run.output
    assert run.report.finished


def test_a_full_disk_ends_the_run_with_one_message(judge: Judge) -> None:
    full = """
@required(1)
def test_it(pytestconfig):
    from pathlib import Path
    log = Path(pytestconfig.option.dra_report) / "events.jsonl"
    log.unlink()
    log.symlink_to("/dev/full")

@required(2)
def test_never(pytestconfig):
    print("was here")
"""
    run = judge(full, "-s")
    assert run.result.ret == 3
    assert run.output.count("No space left on device") == 1
    assert "--report DIR" in run.output
    assert "Traceback" not in run.output
    assert "INTERNALERROR" not in run.output
    assert "was here" not in run.output

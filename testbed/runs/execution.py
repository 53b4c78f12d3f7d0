"""`dra-testbed run`: a testbed, the suites, the exit code; a testbed that was made for the run is removed again."""

from __future__ import annotations

from collections.abc import Sequence

from testbed import bringup
from testbed.bringup import Testbed, planning
from testbed.conformance import report_folder
from testbed.conformance.assertions import require_assertions
from testbed.conformance.results import exit_code
from testbed.conformance.run_started import run_started
from testbed.drivers import refuse_wrong_names
from testbed.errors import TestbedError
from testbed.models.config import TestbedConfig
from testbed.models.driver_file import load_driver_file
from testbed.models.run_request import RunRequest
from testbed.progress import Progress
from testbed.runs import pytest_process, several
from testbed.runs.early_report import EarlyReport, expected_environment
from testbed.runs.known_failures import check_known_ids
from testbed.waiting import set_patience


def execute(request: RunRequest, *others: RunRequest) -> int:
    """Judge the driver and return the exit code. Everything that can be checked without changing anything is checked first.

    `others` are further drivers of the same installation, which are judged afterwards. The exit code is the worst one.
    """
    require_assertions()
    if request.keyword:
        pytest_process.matching_tests(request.keyword)
    set_patience(request.patience)  # for the testbed, which is made in this process
    testbed, config = target(request)
    driver = request.driver_file(config)
    further = [each.driver_file(config) for each in others]
    several.refuse_further_installations(driver, further)
    for each in (driver, *further):
        check_known_ids(each)
    started = run_started(request, driver, expected_environment(request.testbed, config))
    with report_folder.reserve(request.report):
        early = EarlyReport(request.report, started)
        if testbed is None:
            return _on_new_testbed(request, others, config, early)
        with early.recording_failure():
            refuse_wrong_names(testbed.kube, load_driver_file(driver))
            early.begin()
        return _judge(request, others)


def _judge(request: RunRequest, others: Sequence[RunRequest]) -> int:
    """Judge a driver on a testbed that is up, then the others unless the run was stopped, and return the worst exit code."""
    made = pytest_process.run_suites(request)
    codes = [exit_code(made)]
    if made.finished:
        codes += [_judge_installed(each) for each in others]
    return several.worst(codes)


def _judge_installed(request: RunRequest) -> int:
    """Judge a further driver, which was installed with the first one."""
    testbed = bringup.attach(request.testbed)
    driver_file = load_driver_file(request.driver_file(testbed.config))
    Progress().say(f"judging driver {driver_file.driver}")
    started = run_started(
        request, request.driver_file(testbed.config), expected_environment(testbed.name, testbed.config)
    )
    with report_folder.reserve(request.report):
        early = EarlyReport(request.report, started)
        with early.recording_failure():
            early.begin()
            several.wait_until_ready(testbed, driver_file)
        return exit_code(pytest_process.run_suites(request))


def target(request: RunRequest) -> tuple[Testbed | None, TestbedConfig]:
    """Return the testbed to judge on, None if it has to be made first, and its configuration. UsageError if the request is wrong."""
    if request.new_testbed is None:
        testbed = bringup.attach(request.testbed)
        load_driver_file(request.driver_file(testbed.config))
        return testbed, testbed.config
    planning.check(request.new_testbed)
    return None, request.new_testbed


def _on_new_testbed(
    request: RunRequest, others: Sequence[RunRequest], config: TestbedConfig, early: EarlyReport
) -> int:
    progress, code = Progress(), TestbedError.exit_code
    with early.recording_failure():
        made = bringup.bring_up(config, progress, ephemeral=True, evidence=early.keep_logs, begun=early.begin)
    try:
        code = _judge(request, others)
        return code
    finally:
        if request.keeps_testbed(code):
            bringup.keep(made.name)
            progress.say(f"testbed {made.name} stays: export KUBECONFIG={made.folder / 'kubeconfig'}")
            progress.say(f"remove it: dra-testbed down --name {made.name}")
        else:
            bringup.tear_down(made.name, progress)

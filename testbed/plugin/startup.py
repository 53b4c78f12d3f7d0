"""Start the plugin: the controller decides everything once, its workers get the decision. Called when there is a run request."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path

import pytest

from testbed import bringup
from testbed.bringup import sessions
from testbed.conformance import leases, report_folder
from testbed.conformance.assertions import require_assertions
from testbed.conformance.context import RunContext
from testbed.drivers.missing import find_missing
from testbed.drivers.published import kept_slices
from testbed.errors import TestbedError, UsageError
from testbed.models.driver_file import load_driver_file
from testbed.onboarding.checks.all_checks import world_on
from testbed.plugin import first_devices, fixtures, serial_tests
from testbed.plugin.canaries import first_claims
from testbed.plugin.canaries.surroundings import Surroundings
from testbed.plugin.controller import Controller
from testbed.plugin.decision import context_of
from testbed.plugin.judge import Judge
from testbed.plugin.orphan_cleanup import OrphanCleanup
from testbed.plugin.request import check_settings
from testbed.plugin.second_interrupt import SecondInterrupt
from testbed.progress import Progress
from testbed.redaction import redactor
from testbed.vocabulary.world import World
from testbed.waiting import set_patience

WORKER_KEY = "dra_testbed"
_NOTES = pytest.StashKey[list[str]]()


def start(config: pytest.Config) -> None:
    """Register the hooks of this process: a worker's, or the controller's."""
    shipped = getattr(config, "workerinput", {}).get(WORKER_KEY)
    if not shipped:
        _require_assertions()
        check_settings(config)
    context = RunContext.from_json(shipped) if shipped else _decided(config)
    set_patience(context.request.patience)
    redactor.register_environment(os.environ)
    redactor.keep_readable(load_driver_file(context.driver_file).printed_patterns)
    _handle_signals()
    config.stash[fixtures.CONTEXT] = context
    config.pluginmanager.register(fixtures, "dra-testbed-fixtures")
    config.pluginmanager.register(Judge(context), "dra-testbed-judge")
    if shipped:
        config.pluginmanager.register(serial_tests.DeferredToController(), "dra-testbed-serial-tests")
    else:
        _register_controller(config, context)


def _require_assertions() -> None:
    try:
        require_assertions()
    except UsageError as ignored:
        pytest.exit(str(ignored), returncode=ignored.exit_code)


def _register_controller(config: pytest.Config, context: RunContext) -> None:
    surroundings = Surroundings(
        lambda: bringup.attach(context.request.testbed),
        load_driver_file(context.driver_file),
        f"{context.session}-canary",
    )
    first_claims.discard(context.request.report)
    claims = first_claims.FirstClaims(lambda: _world_of_controller(context), context.request.report)
    controller = Controller(context, config, WORKER_KEY, surroundings, claims)
    controller.missing = config.stash[_NOTES]
    config.pluginmanager.register(controller, "dra-testbed-controller")
    config.pluginmanager.register(SecondInterrupt(config), "dra-testbed-second-interrupt")
    leases.discard(context.request.report)
    with_workers = getattr(config.option, "dist", "no") != "no"
    if with_workers:
        _send_one_test_at_a_time(config)
    serial = serial_tests.SerialTests(controller, with_workers=with_workers)
    config.pluginmanager.register(serial, "dra-testbed-serial-tests")
    clearing = OrphanCleanup(lambda: bringup.attach(context.request.testbed), context.session)
    config.pluginmanager.register(clearing, "dra-testbed-orphan-cleanup")


def _world_of_controller(context: RunContext) -> World:
    testbed = bringup.attach(context.request.testbed)
    return world_on(testbed, load_driver_file(context.driver_file), f"{context.session}-first-claims")


def _send_one_test_at_a_time(config: pytest.Config) -> None:
    """Give workers one test at a time, so that they start exclusive tests only after all others have been started."""
    if config.option.maxschedchunk is None:
        config.option.maxschedchunk = 1


def _handle_signals() -> None:
    """Let SIGTERM and SIGHUP end tests as Ctrl-C does, with their clean-up. SIGHUP stays ignored if it was (nohup)."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, signal.default_int_handler)


def _decided(config: pytest.Config) -> RunContext:
    try:
        context = context_of(config)
        _reserve_report_folder(config, context.request.report)
        _register_session(config, context)
        _keep_slices(config, context)
        config.stash[_NOTES] = [*_missing(context), *first_devices.check(context)]
    except UsageError as wrong:
        raise pytest.UsageError(str(wrong)) from wrong
    except TestbedError as broken:
        pytest.exit(str(broken), returncode=broken.exit_code)
    return context


def _missing(context: RunContext) -> list[str]:
    """Return what is missing of the driver, to be printed before tests wait for it."""
    try:
        testbed = bringup.attach(context.request.testbed)
        return find_missing(testbed.kube, load_driver_file(context.driver_file), testbed.kept_nodes)
    except TestbedError:
        return []  # without the right to look, the tests report it


def _keep_slices(config: pytest.Config, context: RunContext) -> None:
    """Keep what the driver publishes before anything uses its devices, for all processes of this session."""
    folder, driver = context.request.report, load_driver_file(context.driver_file).driver
    kube = bringup.attach(context.request.testbed).kube
    kept_slices.keep(folder, kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver}"))
    config.add_cleanup(lambda: kept_slices.discard(folder))


def _reserve_report_folder(config: pytest.Config, folder: Path) -> None:
    """Keep other runs out of the report folder until pytest has ended."""
    with contextlib.ExitStack() as held:
        held.enter_context(report_folder.lock_log(folder))
        config.add_cleanup(held.pop_all().close)


def _register_session(config: pytest.Config, context: RunContext) -> None:
    """Record this session on the testbed until pytest has ended, and delete what killed sessions left there."""
    testbed = bringup.attach(context.request.testbed)
    with contextlib.ExitStack() as held:
        held.enter_context(sessions.session_lock(testbed.folder, context.session))
        config.add_cleanup(held.pop_all().close)
    set_patience(context.request.patience)
    ended = sessions.clean_up_killed_sessions(testbed)
    if ended:
        Progress().say(f"deleted objects of a killed session: {', '.join(ended)}")

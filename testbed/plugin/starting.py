"""Wakes the plugin: the controller decides everything once, its workers are told. Called when `--testbed` is given."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import threading
from pathlib import Path

import pytest

from testbed import bringup, folders
from testbed.bringup import sessions
from testbed.conformance import catalogue, events, facts, leases, profiles
from testbed.conformance.context import RunContext
from testbed.drivers import refuse_wrong_names
from testbed.drivers.published.missing import find_missing
from testbed.errors import TestbedError, UsageError, did_you_mean
from testbed.models.config import effective
from testbed.models.driver_file import load_driver_file
from testbed.models.requirement_enums import Tier
from testbed.plugin import fixtures, lane
from testbed.plugin.clearing import Clearing
from testbed.plugin.controller import Controller
from testbed.plugin.interrupting import Interrupting
from testbed.plugin.judge import Judge
from testbed.progress import Progress
from testbed.waiting import set_patience

WORKER_KEY = "dra_testbed"


def start(config: pytest.Config) -> None:
    """Register what the rest of the session needs."""
    shipped = getattr(config, "workerinput", {}).get(WORKER_KEY)
    if not shipped:
        _check_places(config)
    context = RunContext.from_json(shipped) if shipped else _decided(config)
    set_patience(context.patience)
    _hear_signals()
    config.stash[fixtures.CONTEXT] = context
    config.pluginmanager.register(fixtures, "dra-testbed-fixtures")
    config.pluginmanager.register(Judge(context), "dra-testbed-judge")
    if not shipped:
        controller = Controller(context, config, WORKER_KEY)
        controller.absent = _absent(context)
        config.pluginmanager.register(controller, "dra-testbed-controller")
        config.pluginmanager.register(Interrupting(config), "dra-testbed-interrupting")
        leases.discard(context.report)
    if shipped:
        config.pluginmanager.register(lane.PassedOver(), "dra-testbed-lane")
        return
    if getattr(config.option, "dist", "no") != "no":
        _hand_out_one_by_one(config)
        config.pluginmanager.register(lane.Lane(controller.disruptive), "dra-testbed-lane")
    clearing = Clearing(lambda: bringup.attach(context.testbed), context.run)
    config.pluginmanager.register(clearing, "dra-testbed-clearing")


def _hand_out_one_by_one(config: pytest.Config) -> None:
    """Unless told otherwise. A worker with a handful of tests that want to be alone would begin them while others run side by side."""
    if config.option.maxschedchunk is None:
        config.option.maxschedchunk = 1


def _hear_signals() -> None:
    """Tests that are ended, or whose terminal is closed, clean up as after Ctrl-C; who is deaf to SIGHUP (nohup) stays so."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, signal.default_int_handler)


def workers(config: pytest.Config) -> int:
    """How many processes are worth it; 0 where one is enough. What is wrong with the options is said later, by `start`."""
    try:
        node_devices = _decide(config).facts.node_devices
    except TestbedError:
        return 0
    return leases.workers(len(os.sched_getaffinity(0)), node_devices)


def _check_places(config: pytest.Config) -> None:
    """Pytest chooses its settings before it knows our options, by all words that are the names of files."""
    here = config.invocation_params.dir
    for word in config.args:
        place = word.partition("::")[0]
        suites = folders.data("suites")
        if not (here / place).exists() and (suites / place).exists():
            raise pytest.UsageError(f"there is no {place} here; ids begin in {suites}: {suites / word}")
        top = catalogue.top(here / place)
        settings = top / "pytest.ini" if top else None
        named = bool(config.option.inifilename)
        if settings and settings.is_file() and config.inipath != settings and not named:
            raise pytest.UsageError(
                f"pytest takes the settings of {config.inipath} and not those of {top}, because it takes the word behind an option for a "
                "test: write --report=DIR and --driver=FILE, with an equals sign"
            )


def _decided(config: pytest.Config) -> RunContext:
    try:
        context = _decide(config)
        _reserve(config, context.report)
        _attend(config, context)
    except UsageError as wrong:
        raise pytest.UsageError(str(wrong)) from wrong
    except TestbedError as broken:
        pytest.exit(str(broken), returncode=broken.exit_code)
    return context


def _absent(context: RunContext) -> list[str]:
    """What the tests will miss of the driver, to be said before they wait for it."""
    try:
        return find_missing(bringup.attach(context.testbed).kube, load_driver_file(context.driver_file))
    except TestbedError:
        return []  # who has no right to look is told by the tests


def _reserve(config: pytest.Config, folder: Path) -> None:
    """The report folder is this session's until pytest has ended."""
    with contextlib.ExitStack() as held:
        held.enter_context(events.writing(folder))
        config.add_cleanup(held.pop_all().close)


def _attend(config: pytest.Config, context: RunContext) -> None:
    """The testbed knows of this session until pytest has ended; what killed ones left there goes first."""
    testbed = bringup.attach(context.testbed)
    with contextlib.ExitStack() as held:
        held.enter_context(sessions.session_lock(testbed.folder, context.run))
        config.add_cleanup(held.pop_all().close)
    set_patience(context.patience)
    ended = sessions.clean_up_killed_sessions(testbed)
    if ended:
        Progress().say(f"deleted what a killed session has left: {', '.join(ended)}")


def _decide(config: pytest.Config) -> RunContext:
    option = config.option
    unknown = [tier for tier in option.dra_tiers if tier not in list(Tier)]
    if unknown:
        raise UsageError(f"there is no tier {unknown[0]}", hint=did_you_mean(unknown[0], Tier))
    if option.dra_patience <= 0:
        raise UsageError(
            f"--patience {option.dra_patience:g} would never wait", hint="1 is normal, 3 for slow machines"
        )
    testbed = bringup.attach(option.dra_testbed)
    path = effective(None, {"driver": option.dra_driver}).driver if option.dra_driver else testbed.config.driver
    if path is None:
        raise UsageError(f"testbed {testbed.name} has no driver of its own", hint="say whom to judge: --driver FILE")
    driver_file = load_driver_file(path)
    refuse_wrong_names(testbed.kube, driver_file)
    return RunContext(
        testbed=testbed.name,
        driver_file=path,
        report=Path(option.dra_report).absolute(),
        facts=facts.gather(testbed.kube, driver_file, testbed.cluster.capabilities, testbed.owner),
        provider=testbed.config.provider,
        runtime=_runtime(testbed),
        tiers=frozenset(option.dra_tiers),
        profile=_profile(config),
        patience=option.dra_patience,
        feature_gates=dict(testbed.config.feature_gates),
        run=secrets.token_hex(4),
    )


def _profile(config: pytest.Config) -> str:
    """The one that was named; else `core`, unless somebody says with -k, -m, a tier or a place what he wants."""
    option = config.option
    if option.dra_profile:
        return profiles.profile(option.dra_profile).name
    named = {word: (config.invocation_params.dir / word).resolve() for word in config.args}
    places = [word for word, place in named.items() if catalogue.top(place) != place]
    return profiles.default([option.keyword, option.markexpr, *option.dra_tiers, *places])


def _runtime(testbed: bringup.Testbed) -> str:
    nodes = testbed.kube.list("v1", "Node")
    seen = {
        node["status"]["nodeInfo"]["containerRuntimeVersion"] for node in nodes if "nodeInfo" in node.get("status", {})
    }
    return ", ".join(sorted(seen))

"""Run pairs one after another on one testbed, which is made again after a pair that broke it. Called by ci.mutants."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from ci.judge import foreign_slices, watch_proxy
from ci.judge.faults import Freeze, Injection, Kill, LateWatches, LostEvents, OnProcesses
from ci.judge.moments import Event, EventTail, Object
from ci.judge.outcome import UNCLEAR, Outcome, compare, verdicts
from ci.judge.pairs import Pair
from ci.mutants.activation import MutableTestbed
from ci.mutants.matrix import CONTROL
from testbed import bringup
from testbed.bringup import Testbed, health
from testbed.conformance import events
from testbed.drivers import wait_ready
from testbed.drivers.ready import expected_nodes
from testbed.errors import TestbedError
from testbed.models.config import effective
from testbed.models.status import TestbedPhase
from testbed.progress import Progress
from testbed.waiting import Budget, eventually_true

NAME = "mutants-of-the-judge"
_RUN = [sys.executable, "-m", "testbed.cli.main", "run", "--no-check"]
_ROOT = Path(__file__).parents[2]
_PAUSE = 0.02  # seconds between two looks at the run: a fault has to hit a test that takes two seconds
_LONGEST = 900.0  # seconds for a run; with repetitions, failed waits and a repaired testbed
_RECOVERY = Budget("testbed recovers", 60, "a frozen kubelet reports its node within ten seconds")


class SharedTestbed:
    """The testbed of the pairs. It is made when it is needed first, and again when it is not usable any more."""

    def __init__(self) -> None:
        self._made: MutableTestbed | None = None

    def usable(self) -> MutableTestbed:
        """Return a testbed in which all components run."""
        if self._made and not _is_usable(self._made):
            print(f"testbed {NAME} is broken and is made again", flush=True)
            self.remove()
        if self._made is None:
            config = replace(effective(None, {}), name=NAME)
            self._made = MutableTestbed(bringup.bring_up(config, Progress(), ephemeral=True), fault="")
        return self._made

    def remove(self) -> None:
        """Remove the testbed, if there is one."""
        self._made = None
        bringup.tear_down(NAME, Progress())


def judge(pairs: Sequence[Pair], work: Path) -> Iterator[Outcome]:
    """Run the pairs; yield the outcome of each one when it has ended."""
    shared = SharedTestbed()
    try:
        for pair in pairs:
            try:
                yield run_pair(shared.usable(), pair, work.absolute())
            except TestbedError as broken:
                yield Outcome(
                    pair.name, UNCLEAR, f"the testbed broke: {str(broken).splitlines()[0]}", digest=pair.digest
                )
                shared.remove()
    finally:
        shared.remove()


def run_pair(target: MutableTestbed, pair: Pair, work: Path) -> Outcome:
    """Run the requirements of a pair with its driver, while its fault is injected."""
    folder, began = work / pair.name, time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with target.as_mutant(pair.driver or CONTROL), _fault(pair, target.testbed) as injection:
        _run(pair, folder, injection)
    seconds = round(time.monotonic() - began, 1)
    report = folder / "report" / "report.yaml"
    if not report.exists():
        return Outcome(pair.name, UNCLEAR, f"there is no report; see {folder / 'run.log'}", seconds, pair.digest)
    seen = verdicts(yaml.safe_load(report.read_text()))
    return compare(pair, seen, happened=injection.happened, seconds=seconds)


@contextlib.contextmanager
def _fault(pair: Pair, testbed: Testbed) -> Iterator[Injection]:
    """Prepare the fault of a pair, and end it after the block."""
    fault = pair.fault
    with contextlib.ExitStack() as undo:
        if isinstance(fault, Kill | Freeze) and pair.when:
            on_processes = OnProcesses(fault, pair.when, testbed.cluster.components, lambda: _pods(testbed))
            undo.callback(on_processes.lift)
            yield on_processes
        elif isinstance(fault, LateWatches | LostEvents):
            yield undo.enter_context(_changed_watches(fault, testbed.cluster.kubeconfig))
        else:
            undo.enter_context(_objects(testbed, foreign_slices.SLICES))
            yield Lasting()


@dataclass
class Lasting:
    """A fault that lasts for the whole run."""

    proxy: watch_proxy.WatchProxy | None = None

    def observe(self, events: Sequence[Event]) -> None:
        """Do nothing: the fault lasts."""

    def lift(self) -> None:
        """Do nothing: what prepared the fault ends it."""

    @property
    def happened(self) -> bool:
        """Return True, unless there is a proxy that has changed nothing."""
        return self.proxy is None or self.proxy.changed > 0


@contextlib.contextmanager
def _changed_watches(fault: LateWatches | LostEvents, kubeconfig: Path) -> Iterator[Lasting]:
    upstream = watch_proxy.Upstream.of(yaml.safe_load(kubeconfig.read_text()))
    late = fault.seconds if isinstance(fault, LateWatches) else 0
    proxy = watch_proxy.WatchProxy(upstream, late, fault.types if isinstance(fault, LostEvents) else ())
    with watch_proxy.running(proxy) as url, watch_proxy.in_front_of(kubeconfig, url, proxy.token):
        yield Lasting(proxy)


@contextlib.contextmanager
def _objects(testbed: Testbed, objects: Sequence[Object]) -> Iterator[None]:
    """Let objects exist for the block."""
    try:
        for each in objects:
            testbed.kube.apply(dict(each))
        yield
    finally:
        for each in objects:
            testbed.kube.delete(dict(each))


def _run(pair: Pair, folder: Path, injection: Injection) -> None:
    """Run `dra-testbed run` to its end. Tests run one after another, so that the fault hits the intended one."""
    shutil.rmtree(folder / "report", ignore_errors=True)  # the events of an earlier run would be taken for this one's
    words = ["--testbed", NAME, "-k", pair.keyword, "-n", "0", "-v", f"--patience={pair.patience:g}"]
    tail, end = EventTail(folder / "report" / events.FILE), time.monotonic() + _LONGEST
    with (folder / "run.log").open("w") as log:
        run = subprocess.Popen(
            [*_RUN, *words, "--report", str(folder / "report")],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=_environment(), cwd=_ROOT,
        )  # fmt: skip
        try:
            while run.poll() is None and time.monotonic() < end:
                injection.observe(tail.new())
                time.sleep(_PAUSE)
        finally:
            injection.lift()
            _end(run)


def _end(run: subprocess.Popen[bytes]) -> None:
    """End a run that was interrupted or takes too long: as Ctrl-C does, so that it cleans up."""
    if run.poll() is None:
        run.send_signal(signal.SIGINT)
        try:
            run.wait(120)
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()


def _environment() -> dict[str, str]:
    """Return the environment of a run, in which the watch proxy on the loopback interface is reached directly."""
    direct = ",".join(filter(None, [os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), "127.0.0.1"]))
    return {**os.environ, "PYTHONPATH": str(_ROOT), "NO_PROXY": direct, "no_proxy": direct}


def _pods(testbed: Testbed) -> list[Object]:
    try:
        return list(testbed.kube.list("v1", "Pod"))
    except TestbedError:  # the API server may be what the fault hits
        return []


def _is_usable(target: MutableTestbed) -> bool:
    """Return True if all components run and the nodes and a correct driver become ready."""
    testbed = target.testbed
    if not all(part.alive for part in testbed.cluster.components()):
        return False
    if not eventually_true(lambda: health.status_of(NAME).phase is TestbedPhase.READY, _RECOVERY):
        return False
    try:
        if target.fault == "" and testbed.driver_file:
            nodes = expected_nodes(testbed.kube, testbed.driver_file, testbed.kept_nodes)
            wait_ready(testbed.kube, testbed.driver_file, nodes)
    except TestbedError:
        return False
    return True

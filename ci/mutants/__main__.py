"""`python -m ci.mutants`: run each requirement on its mutants and show the results. `tox -e mutants` calls it; needs root.

Then run all requirements about the driver on drivers that do nothing (`--dead`: only these). `--judge` runs faults around the driver.

Exits with 0 if every requirement passed on the correct driver and failed on each of its mutants, and if ci/mutants/dead.yaml lists what
passed on drivers that do nothing; with 1 if not, and with 3 if the testbed broke. After an interrupt, the next call continues.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ci.judge import command as judge
from ci.judge import page as judge_page
from ci.mutants import dead, dead_page, dead_runs, known, page
from ci.mutants.activation import MutableTestbed, mutable_testbed
from ci.mutants.digest import digest
from ci.mutants.matrix import CAUGHT, UNCLEAR, MutantResult, State, missing, plan, results, without
from testbed import folders
from testbed.conformance import catalogue, events
from testbed.conformance.catalogue import Catalogue, Entry
from testbed.errors import TestbedError
from testbed.models import features
from testbed.models.run_request import RunRequest
from testbed.runs import pytest_process

PAGE = Path(__file__).parents[2] / "docs/mutants.md"
_WORK = Path(".tox/mutants-so-far")
_PLAIN = folders.data("manifests") / "drivers/fake-gpu.yaml"
_EXEMPT = folders.data("manifests") / "drivers/mutants/fake-gpu-exempt.yaml"


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m ci.mutants", description=__doc__, allow_abbrev=False)
    parser.add_argument("-k", dest="words", default="", metavar="TEXT", help="only requirements whose ID contains TEXT")
    parser.add_argument(
        "--mutant",
        dest="mutants",
        action="append",
        default=[],
        metavar="NAME",
        help="only this one; control: the correct driver",
    )
    parser.add_argument(
        "--work", type=Path, default=_WORK, help="folder for results, logs and reports [default: %(default)s]"
    )
    parser.add_argument("--missing", action="store_true", help="only pairs without a fresh result in docs/mutants.md")
    parser.add_argument("--dead", action="store_true", help="only all requirements on drivers that do nothing")
    parser.add_argument("--again", action="store_true", help="ignore earlier results of what is selected")
    parser.add_argument(
        "--patience",
        type=float,
        default=0.25,
        help="patience factor of the suites [default: %(default)s]",
    )
    parser.add_argument("--testbed", metavar="NAME", help="use this running testbed with the fake driver, exclusively")
    parser.add_argument("--list", action="store_true", help="show the pairs and their results; run nothing")
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 if docs/mutants.md does not match the suites; for tox -e lint"
    )
    parser.add_argument(
        "--write", action="store_true", help="write docs/mutants.md with the results so far; run nothing"
    )
    judge.add_options(parser)
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """Run what the arguments ask for; return the exit code."""
    options = arguments(words)
    every = catalogue.read([folders.data("suites")])
    state, of_dead = State(options.work / "results.jsonl"), State(options.work / "dead.jsonl")
    if options.check:
        return check(every)
    if options.judge:
        try:
            return judge.main(options)
        finally:
            if not (options.fast or options.list):  # .ci/run changes no file of the checkout
                write(every, state, of_dead)
    wanted, wanted_dead = plans(every, options)
    if options.again:
        state.discard(wanted)
        of_dead.discard(wanted_dead)
    if not (options.write or options.list):
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            run(wanted, state, options)
            run_dead(wanted_dead, of_dead, options)
        except KeyboardInterrupt:
            print("interrupted; the same command continues here", file=sys.stderr)
        except TestbedError as broken:
            print(f"error: {broken}", file=sys.stderr)
            return broken.exit_code
        finally:
            write(every, state, of_dead)
    if options.write:
        write(every, state, of_dead)
        return 0
    return max(show(wanted, state), show_dead(wanted_dead, of_dead))


def plans(every: Catalogue, options: argparse.Namespace) -> tuple[dict[str, list[Entry]], dict[str, list[Entry]]]:
    """Return what to run on the mutants, and on drivers that do nothing. A selection of mutants or requirements is about the first."""
    on_dead = options.dead or not (options.mutants or options.words)
    wanted = {} if options.dead else plan(every, options.mutants, options.words)
    wanted_dead = dead.plan(every, options.mutants, options.words) if on_dead else {}
    if options.missing:
        text = PAGE.read_text()
        seen = dead_page.results(every, page.parse(text)).values()
        wanted = missing(wanted, page.caught(text))
        wanted_dead = without(wanted_dead, {(*each.key, each.digest) for each in seen})
    return wanted, wanted_dead


def check(every: Catalogue) -> int:
    """Return 1 if the page lists other mutants or requirements than the suites, or mutants do not suit the subject of a requirement."""
    text, reasons = PAGE.read_text(), dead.read()
    seen = dead_page.results(every, page.parse(text))
    problems = [problem for each in every.entries if (problem := known.subject_problem(each.requirement))]
    problems += [*dead.mistakes(every, reasons), *dead.unexplained(seen.values(), reasons.by_key())]
    print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    if problems:
        return 1
    if page.render(every, page.parse(text)) == text:
        return 0
    print(f"{PAGE.name} does not match the suites; run: python -m ci.mutants --write", file=sys.stderr)
    return 1


def write(every: Catalogue, state: State, of_dead: State) -> None:
    """Write the page: its earlier results, replaced by new ones as far as the tests have not changed since."""
    before = page.parse(PAGE.read_text()) if PAGE.exists() else {}
    digests = {entry.requirement.id: digest(entry) for entry in every.entries}
    fresh = [seen for seen in state.read().values() if seen.digest == digests.get(seen.requirement)]
    fresh_dead = [seen for seen in of_dead.read().values() if seen.digest == digests.get(seen.requirement)]
    outcomes = judge_page.cells(judge.outcomes(state.path.parent))
    found = {**before, **page.cells(fresh), **dead_page.cells(before, fresh_dead), **outcomes}
    PAGE.write_text(page.render(every, found))


def run(wanted: dict[str, list[Entry]], state: State, options: argparse.Namespace) -> None:
    """Run all pairs without a result on one testbed; each feature gate that is off needs its own."""
    left = without(wanted, {(*seen.key, seen.digest) for seen in state.read().values() if seen.result != UNCLEAR})
    plain = {name: found for name, found in left.items() if not name.startswith(known.GATE_OFF)}
    if plain:
        with mutable_testbed(options.testbed) as target:
            for name, found in plain.items():
                _judge(target, name, found, state, options)
    for name in left.keys() - plain.keys():
        with mutable_testbed(None, {name.removeprefix(known.GATE_OFF): False}) as target:
            _judge(target, name, left[name], state, options)


def run_dead(wanted: dict[str, list[Entry]], state: State, options: argparse.Namespace) -> None:
    """Run all requirements without a result on the drivers that do nothing, on one testbed."""
    left = without(
        wanted, {(*seen.key, seen.digest) for seen in state.read().values() if seen.result != dead.NO_ANSWER}
    )
    if left:
        with mutable_testbed(options.testbed) as target:
            dead_runs.run(left, target, state, options.work, options.patience)


def show_dead(wanted: dict[str, list[Entry]], state: State) -> int:
    """Print what passed without a reason, and each reason without a pass; return 1 if there is one."""
    if not wanted:
        return 0
    found = dead.problems(wanted, state.read(), dead.read().by_key())
    print(*found, sep="\n", end="\n" if found else "")
    print(f"drivers that do nothing: {len(found)} problems")
    return 1 if found else 0


def show(wanted: dict[str, list[Entry]], state: State) -> int:
    """Print the results as a table, or as lines if this is no terminal; return 1 if a pair has no or an unexpected result."""
    seen = state.read()
    table = Table("mutant", "requirement", "result", "what was seen", box=None, pad_edge=False)
    good = True
    for name, found in wanted.items():
        for entry in found:
            each = seen.get((name, entry.requirement.id), MutantResult(name, entry.requirement.id, page.NOT_YET))
            good &= each.result == CAUGHT
            if sys.stdout.isatty():
                table.add_row(name, each.requirement, each.result, each.message[:120])
            else:
                print(_line(each))
    if sys.stdout.isatty():
        Console(highlight=False).print(table)
    return 0 if good else 1


def _judge(target: MutableTestbed, name: str, found: list[Entry], state: State, options: argparse.Namespace) -> None:
    """Run the requirements of one mutant. Those that another test kept from running are run again, each alone."""
    seen = _judge_once(target, name, found, state, options)
    unclear = {each.requirement for each in seen if each.result == UNCLEAR} if len(found) > 1 else set()
    for entry in found:
        if entry.requirement.id in unclear:
            _judge_once(target, name, [entry], state, options)


def _judge_once(
    target: MutableTestbed, name: str, found: list[Entry], state: State, options: argparse.Namespace
) -> list[MutantResult]:
    began, seen = time.monotonic(), list[MutantResult]()
    folder = (options.work / name.replace(":", "-")).absolute()
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier attempt
    try:
        with target.as_mutant(name):
            for driver, part in _by_driver_file(found).items():
                _run_suites(target.testbed.name, part, folder / driver.stem, options.patience, driver)
    finally:
        digests = {entry.requirement.id: digest(entry) for entry in found}
        logs = [each.parent for each in sorted(folder.glob(f"*/{events.FILE}"))]
        seen = [each for log in logs for each in results(name, events.read(log), digests)]
        state.add(seen)
        for each in seen:
            print(_line(each), flush=True)
        print(f"{name}: {len(seen)} of {len(found)} in {time.monotonic() - began:.0f} s", flush=True)
    return seen


def _by_driver_file(found: list[Entry]) -> dict[Path, list[Entry]]:
    """Return the requirements by the driver file to judge by: those about exempt uses need one with exemptions."""
    parts: dict[Path, list[Entry]] = {}
    for entry in found:
        is_exempt = any(each.startswith(features.EXEMPT) for each in entry.requirement.features)
        parts.setdefault(_EXEMPT if is_exempt else _PLAIN, []).append(entry)
    return parts


def _run_suites(testbed: str, found: list[Entry], folder: Path, patience: float, driver: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tests = tuple(f"{entry.path}::{entry.function}" for entry in found)
    request = RunRequest(testbed=testbed, report=folder, patience=patience, tests=tests, driver=driver, check=False)
    with (folder / "pytest.log").open("w") as log:
        subprocess.run(pytest_process.argv(request), stdout=log, stderr=subprocess.STDOUT, check=False)
    if not (folder / events.FILE).exists():
        raise TestbedError(f"pytest started no test; see {folder / 'pytest.log'}")


def _line(seen: MutantResult) -> str:
    return f"{seen.result:9} {seen.mutant:32} {seen.requirement:12} {seen.seconds:6.1f} s  {seen.message[:200]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

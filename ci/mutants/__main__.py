"""`python -m ci.mutants`: run each requirement on its mutants and show the matrix. `tox -e mutants` calls it; needs root.

Ends with 0 when every requirement passed where nothing is wrong and failed on each of its mutants, with 1 when one did not, with 3 when
the testbed broke. Interrupted, it goes on where it was when it is called again.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ci.mutants import known, page
from ci.mutants.changing import Victim
from ci.mutants.digest import digest
from ci.mutants.matrix import CAUGHT, UNCLEAR, Seen, State, missing, plan, results, without
from testbed import bringup, folders
from testbed.conformance import catalogue, events
from testbed.conformance.catalogue import Catalogue, Entry
from testbed.errors import TestbedError
from testbed.models.config import effective
from testbed.progress import Progress
from testbed.runs.pytest_process import SuiteRun

PAGE = Path(__file__).parents[2] / "docs/mutants.md"
_WORK = Path(".tox/mutants-so-far")


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m ci.mutants", description=__doc__, allow_abbrev=False)
    parser.add_argument("-k", dest="words", default="", metavar="TEXT", help="only requirements with this in their id")
    parser.add_argument(
        "--mutant", dest="mutants", action="append", default=[], metavar="NAME", help="only this one; or: control"
    )
    parser.add_argument(
        "--work", type=Path, default=_WORK, help="results so far, logs and reports [default: %(default)s]"
    )
    parser.add_argument("--missing", action="store_true", help="only what docs/mutants.md knows no result of")
    parser.add_argument("--again", action="store_true", help="forget the results so far")
    parser.add_argument(
        "--patience", type=float, default=0.25, help="of the suites; the control run shows that it is enough"
    )
    parser.add_argument("--testbed", metavar="NAME", help="one that is up, with the fake driver, and for nobody else")
    parser.add_argument("--list", action="store_true", help="show what there is to do, and do nothing")
    parser.add_argument("--check", action="store_true", help="is docs/mutants.md about these suites? For tox -e lint")
    parser.add_argument("--write", action="store_true", help="only write docs/mutants.md, with the results so far")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """The exit code."""
    options = arguments(words)
    every = catalogue.read([folders.data("suites")])
    state = State(options.work / "results.jsonl")
    if options.check:
        return check(every)
    if options.again:
        state.path.unlink(missing_ok=True)
    wanted = plan(every, options.mutants, options.words)
    if options.missing:
        wanted = missing(wanted, page.caught(PAGE.read_text()))
    if not (options.write or options.list):
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            run(wanted, state, options)
        except KeyboardInterrupt:
            print("interrupted; the same command goes on from here", file=sys.stderr)
        except TestbedError as broken:
            print(f"error: {broken}", file=sys.stderr)
            return broken.exit_code
        finally:
            write(every, state)
    if options.write:
        write(every, state)
        return 0
    return show(wanted, state)


def check(every: Catalogue) -> int:
    """1 when the page lists other mutants or requirements than there are."""
    text = PAGE.read_text()
    if page.render(every, page.remembered(text)) == text:
        return 0
    print(f"{PAGE.name} is not about these suites: python -m ci.mutants --write", file=sys.stderr)
    return 1


def write(every: Catalogue, state: State) -> None:
    """Write the page: its earlier results, replaced by new ones as far as the tests have not changed since."""
    before = page.remembered(PAGE.read_text()) if PAGE.exists() else {}
    digests = {entry.requirement.id: digest(entry) for entry in every.entries}
    fresh = [seen for seen in state.read().values() if seen.digest == digests.get(seen.requirement)]
    PAGE.write_text(page.render(every, {**before, **page.told(fresh)}))


def run(wanted: dict[str, list[Entry]], state: State, options: argparse.Namespace) -> None:
    """All that is not known yet, on one testbed; features that are off need one each."""
    left = without(wanted, {(*seen.key, seen.digest) for seen in state.read().values() if seen.result != UNCLEAR})
    plain = {name: found for name, found in left.items() if not name.startswith(known.GATE_OFF)}
    if plain:
        with _testbed(options.testbed, {}) as victim:
            for name, found in plain.items():
                _judge(victim, name, found, state, options)
    for name in left.keys() - plain.keys():
        with _testbed(None, {name.removeprefix(known.GATE_OFF): False}) as victim:
            _judge(victim, name, left[name], state, options)


def show(wanted: dict[str, list[Entry]], state: State) -> int:
    """The matrix, a line for each pair on no terminal; 1 when something is not as it has to be."""
    seen = state.read()
    table = Table("mutant", "requirement", "result", "what was seen", box=None, pad_edge=False)
    good = True
    for name, found in wanted.items():
        for entry in found:
            each = seen.get((name, entry.requirement.id), Seen(name, entry.requirement.id, page.NOT_YET))
            good &= each.result == CAUGHT
            if sys.stdout.isatty():
                table.add_row(name, each.requirement, each.result, each.message[:120])
            else:
                print(_line(each))
    if sys.stdout.isatty():
        Console(highlight=False).print(table)
    return 0 if good else 1


def _judge(victim: Victim, name: str, found: list[Entry], state: State, options: argparse.Namespace) -> None:
    """One mutant. What it leaves in the cluster may keep the tests after it from running; those are run again, each alone."""
    seen = _judge_once(victim, name, found, state, options)
    unclear = {each.requirement for each in seen if each.result == UNCLEAR} if len(found) > 1 else set()
    for entry in found:
        if entry.requirement.id in unclear:
            _judge_once(victim, name, [entry], state, options)


def _judge_once(victim: Victim, name: str, found: list[Entry], state: State, options: argparse.Namespace) -> list[Seen]:
    began, seen = time.monotonic(), list[Seen]()
    folder = (options.work / name.replace(":", "-")).absolute()
    shutil.rmtree(folder, ignore_errors=True)  # an earlier attempt's
    try:
        with victim.made_wrong(name):
            _run_suites(victim.testbed.name, found, folder, options.patience)
    finally:
        digests = {entry.requirement.id: digest(entry) for entry in found}
        seen = results(name, events.read(folder), digests) if (folder / events.FILE).exists() else []
        state.add(seen)
        for each in seen:
            print(_line(each), flush=True)
        print(f"{name}: {len(seen)} of {len(found)} in {time.monotonic() - began:.0f} s", flush=True)
    return seen


def _run_suites(testbed: str, found: list[Entry], folder: Path, patience: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    paths = tuple(Path(f"{entry.path}::{entry.function}") for entry in found)
    wanted = SuiteRun(testbed, folder, profile="full", patience=patience, paths=paths)
    with (folder / "pytest.log").open("w") as log:
        subprocess.run(wanted.argv(), stdout=log, stderr=subprocess.STDOUT, check=False)
    if not (folder / events.FILE).exists():
        raise TestbedError(f"pytest began nothing; see {folder / 'pytest.log'}")


@contextmanager
def _testbed(name: str | None, gates: dict[str, bool]) -> Iterator[Victim]:
    if name:
        yield Victim(bringup.attach(name))
        return
    progress = Progress()
    made = bringup.bring_up(
        replace(effective(None, {"feature_gates": gates}), name="mutants"), progress, ephemeral=True
    )
    try:
        yield Victim(made, fault="")
    finally:
        bringup.tear_down(made.name, progress)


def _line(seen: Seen) -> str:
    return f"{seen.result:9} {seen.mutant:32} {seen.requirement:12} {seen.seconds:6.1f} s  {seen.message[:200]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

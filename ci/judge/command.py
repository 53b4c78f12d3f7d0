"""`python -m ci.mutants --judge`: run pairs, keep their outcomes, show them. Called by ci.mutants.__main__."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from ci.judge.outcome import RIGHT, UNCLEAR, Outcome
from ci.judge.pairs import PAIRS, Pair
from ci.judge.running import judge
from testbed.errors import TestbedError, UsageError, did_you_mean

FILE = "judge.jsonl"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the mutants of the judge."""
    about = "run the mutants of the judge instead: faults around the driver"
    parser.add_argument("--judge", action="store_true", help=about)
    only = "with --judge: only this pair of fault and driver"
    parser.add_argument("--pair", dest="pairs", action="append", default=[], metavar="NAME", help=only)
    parser.add_argument("--fast", action="store_true", help="with --judge: only the pairs that .ci/run runs")


def main(options: argparse.Namespace) -> int:
    """Run what the options ask for. Return 1 if a verdict was wrong or is missing, the error's code if the testbed broke."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        pairs = choose(options.pairs, fast=options.fast)
        if not options.list:
            run(pairs, options.work, again=options.again)
        return show(pairs, options.work)
    except KeyboardInterrupt:
        print("interrupted; the same command continues here", file=sys.stderr)
        return 1
    except TestbedError as broken:
        print(f"error: {broken}", file=sys.stderr)
        return broken.exit_code


def choose(names: Sequence[str], *, fast: bool = False) -> list[Pair]:
    """Return the pairs of these names, or all; with `fast` only those that .ci/run runs. UsageError for an unknown name."""
    known = [pair.name for pair in PAIRS]
    for name in names:
        if name not in known:
            raise UsageError(f"there is no pair {name}", hint=did_you_mean(name, known))
    return [pair for pair in PAIRS if (not names or pair.name in names) and (pair.fast or not fast)]


def run(pairs: Sequence[Pair], work: Path, *, again: bool) -> None:
    """Run the pairs that have no outcome yet, with `again` all, and keep the outcome of each one as soon as it is known."""
    file = work / FILE
    known = () if again else outcomes(work)
    done = {(each.pair, each.digest) for each in known if each.result != UNCLEAR}
    for outcome in judge([pair for pair in pairs if (pair.name, pair.digest) not in done], work / "judge"):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as kept:
            kept.write(json.dumps(asdict(outcome)) + "\n")
        print(line(outcome), flush=True)


def outcomes(work: Path) -> list[Outcome]:
    """Return all outcomes so far, oldest first."""
    file = work / FILE
    return [Outcome(**json.loads(each)) for each in file.read_text().splitlines()] if file.exists() else []


def show(pairs: Iterable[Pair], work: Path) -> int:
    """Print the last outcome of each pair; return 1 if one is missing or not right."""
    last = {(each.pair, each.digest): each for each in outcomes(work)}
    found = [last.get((pair.name, pair.digest), Outcome(pair.name, "missing")) for pair in pairs]
    for each in found:
        print(line(each))
    right = sum(each.result == RIGHT for each in found)
    print(f"{right} of {len(found)} pairs are right")
    return 0 if right == len(found) else 1


def line(outcome: Outcome) -> str:
    """Return an outcome as a line of text."""
    return f"{outcome.result:8} {outcome.pair:40} {outcome.seconds:6.1f} s  {outcome.seen}".rstrip()

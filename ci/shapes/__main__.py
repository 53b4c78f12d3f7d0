"""`python -m ci.shapes`: run each shape of driver and its wrong twin. `tox -e shapes` calls it; needs root.

Exits with 0 if every correct driver passed its requirements and every twin failed on exactly those that must catch it, otherwise with 1.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from ci.shapes.judging import Outcome, judge
from ci.shapes.table import SHAPES, Shape, choose
from testbed.conformance.profiles import FULL, PROFILES
from testbed.errors import TestbedError


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m ci.shapes", description=__doc__, allow_abbrev=False)
    parser.add_argument("--shape", dest="shapes", action="append", default=[], metavar="NAME", help="only this shape")
    only = "the requirements that run beside those of the shape [default: %(default)s]"
    parser.add_argument("--profile", choices=PROFILES, default=FULL, help=only)
    parser.add_argument("--list", action="store_true", help="show the shapes; run nothing")
    parser.add_argument("--work", type=Path, default=Path(".tox/shapes-so-far"), help="folder of reports")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """Run what the command line asks for."""
    options = arguments(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if options.list:
            print("\n".join(f"{each.name}: {each.about}" for each in SHAPES))
            return 0
        return _show([_judged(each, options) for each in choose(options.shapes)])
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 1
    except TestbedError as broken:
        print(f"error: {broken}", file=sys.stderr)
        return broken.exit_code


def _judged(shape: Shape, options: argparse.Namespace) -> Outcome:
    outcome = judge(shape, options.profile, options.work)
    print(
        f"{'wrong' if outcome.problems else 'right':6} {shape.name:30} {outcome.seconds:6.1f} s  {outcome.passed} passed"
    )
    print("".join(f"  {each}\n" for each in outcome.problems), end="", flush=True)
    return outcome


def _show(outcomes: Sequence[Outcome]) -> int:
    right = sum(not each.problems for each in outcomes)
    print(f"{right} of {len(outcomes)} shapes are right")
    return 0 if outcomes and right == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

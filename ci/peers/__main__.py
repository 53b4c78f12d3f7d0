"""`python -m ci.peers`: judge drivers of others with our suites, and say what came out. `tox -e peers` calls it; needs root.

Words that it does not know go to `dra-testbed run`. Ends with 0 when every difference is explained in ci/peers/NAME/differences.yaml,
with 1 when one is not, or is none any more, or when nothing was judged, with 3 when the testbed broke. Interrupted, it waits until the
testbed is taken down.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from ci.peers import differences, page
from ci.peers.differences import Judged
from ci.peers.preparing import EXPLAINED, HERE, PROGRAMS, edition, prepare, version
from testbed import process
from testbed.conformance import events
from testbed.errors import Incomplete, TestbedError, UsageError
from testbed.models.report import DriverConformanceReport
from testbed.progress import Progress
from testbed.reporting import report

PAGE = HERE.parents[1] / "docs/peers.md"
_JUDGED = (0, 1, 4)  # conformant, not conformant, and a part that was asked for
_NOT_FOR_RUN = {
    "--driver": "the driver is the peer's; --peer says which",
    "--report": "reports lie below --work, and are read from there",
    "--plan": "a plan judges nothing; `dra-testbed run --plan` shows one",
}
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def arguments(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The command line, and what of it is for `dra-testbed run`."""
    parser = argparse.ArgumentParser(prog="python -m ci.peers", description=__doc__, allow_abbrev=False)
    parser.add_argument("--peer", dest="peers", action="append", choices=PROGRAMS, help="only this one; repeatable")
    parser.add_argument("--work", type=Path, default=Path(".tox/peers-so-far"), help="[default: %(default)s]")
    parser.add_argument("--write", action="store_true", help="run nothing: write docs/peers.md from the reports so far")
    options, for_run = parser.parse_known_args(words)
    for word in (each.partition("=")[0] for each in for_run):
        if word in _NOT_FOR_RUN:
            parser.error(f"{word} is not for peers: {_NOT_FOR_RUN[word]}")
    return options, for_run


def main(words: Sequence[str]) -> int:
    """The exit code."""
    options, for_run = arguments(words)
    work, peers = options.work.absolute(), options.peers or list(PROGRAMS)
    try:
        for peer in () if options.write else peers:
            code = run(peer, work, for_run)
            if code not in _JUDGED:
                return code
        if options.write:
            write(work)
        return max(tell(peer, judge(peer, work)) for peer in peers)
    except TestbedError as broken:
        print(f"error: {broken}", file=sys.stderr)
        return broken.exit_code


def write(work: Path) -> None:
    """The page, from all reports that there are. It is left alone when a peer has none, whose section would be lost."""
    seen = {peer: (version(peer), judge(peer, work)) for peer in PROGRAMS}
    missing = [peer for peer, (_, judged) in seen.items() if not judged.tested]
    if missing:
        raise UsageError(
            f"nothing was judged of {', '.join(missing)}; {PAGE.name} stays as it was", hint="tox -e peers"
        )
    PAGE.write_text(page.render(seen))


def run(peer: str, work: Path, words: Sequence[str]) -> int:
    """What a vendor would type. Reports of different words stay beside each other, so that a long run can be done in parts."""
    file = prepare(peer, work, Progress())
    folder = _reports(peer, work) / (re.sub(r"\W+", "-", " ".join(words)).strip("-") or "core")
    program = shutil.which("dra-testbed") or str(Path(sys.executable).with_name("dra-testbed"))
    folder.parent.mkdir(parents=True, exist_ok=True)
    return process.call([program, "run", f"--driver={file}", f"--report={folder}", *words])


def judge(peer: str, work: Path) -> Judged:
    """What is known of a peer, and the verdicts of its reports."""
    reports = differences.alike(_read(_reports(peer, work)))
    where = reports[-1].environment if reports else None
    return Judged(differences.read(HERE / peer / EXPLAINED), differences.newest(reports), where)


def tell(peer: str, judged: Judged) -> int:
    """Say it; 1 when something is not understood, or nothing is known."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in differences.counted(judged.verdicts.values()))
    on = f" on Kubernetes {judged.where.kubernetes}" if judged.where else ""
    print(f"{peer} {version(peer)}{on}: {counts or 'no reports'}; {len(judged.failed)} differences")
    if not judged.tested:
        print("  nothing was judged")
    for each in judged.unexplained:
        print(f"  {each.id}: " + (f"{each.verdict}, not explained: {each.message}" if each.verdict else "no verdict"))
    for name in judged.outdated:
        print(f"  {name} passes; take it out of ci/peers/{peer}/differences.yaml")
    return 1 if judged.unexplained or judged.outdated or not judged.tested else 0


def _reports(peer: str, work: Path) -> Path:
    """Where the reports of a peer as it is now lie; those of another version or of other manifests are about another driver."""
    return work / "reports" / peer / edition(peer)


def _read(folder: Path) -> Iterator[DriverConformanceReport]:
    """From the events, which also a run has left behind that was killed; one that began nothing says nothing."""
    for log in sorted(folder.glob(f"*/{events.FILE}")):
        with contextlib.suppress(Incomplete):
            yield report.build(events.read(log.parent))


def _listen() -> None:
    """Let signals end us; those that were ignored (nohup) stay so."""
    for each in STOPS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _stop)


def _stop(number: int, _: FrameType | None) -> NoReturn:
    """End when `dra-testbed run` has taken its testbed down. It survives a Ctrl-C and ends as if it had judged, so its code says nothing.

    Only the first signal counts: after Ctrl-C tox sends the same once more, and nobody would wait for the testbed.
    """
    for each in STOPS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    _listen()
    sys.exit(main(sys.argv[1:]))

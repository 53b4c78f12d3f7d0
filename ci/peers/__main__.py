"""`python -m ci.peers`: run the suites on drivers of other projects. `tox -e peers` calls it; needs root.

Unknown arguments are passed to `dra-testbed run`. Exits with 0 if ci/peers/explained/NAME.yaml explains every failed requirement, with 1
if it does not, if an explained requirement passes, or if nothing was judged, and with 3 if the testbed broke. After an interrupt it waits
until the testbed is removed.
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
from ci.peers.preparing import PEERS, explanations, fingerprint, options, prepare, version
from testbed import process
from testbed.conformance import events
from testbed.errors import Incomplete, TestbedError, UsageError
from testbed.models.report import DriverConformanceReport
from testbed.progress import Progress
from testbed.reporting import report

PAGE = Path(__file__).parents[2] / "docs/peers.md"
_JUDGED = (0, 1, 4)  # conformant, partial or published; failed; incomplete
_NOT_FOR_RUN = {
    "--driver": "use --peer to select the driver",
    "--report": "reports are written to and read from --work",
    "--plan": "use `dra-testbed run --plan`",
}
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def arguments(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the command line; return our options and the arguments for `dra-testbed run`."""
    parser = argparse.ArgumentParser(prog="python -m ci.peers", description=__doc__, allow_abbrev=False)
    parser.add_argument("--peer", dest="peers", action="append", choices=PEERS, help="only this driver; repeatable")
    parser.add_argument(
        "--work", type=Path, default=Path(".tox/peers-so-far"), help="folder of reports [default: %(default)s]"
    )
    parser.add_argument("--write", action="store_true", help="write docs/peers.md from the reports so far; run nothing")
    options, for_run = parser.parse_known_args(words)
    for word in (each.partition("=")[0] for each in for_run):
        if word in _NOT_FOR_RUN:
            parser.error(f"{word} can't be used for peers: {_NOT_FOR_RUN[word]}")
    return options, for_run


def main(words: Sequence[str]) -> int:
    """Run and judge the peers; return the exit code."""
    options, for_run = arguments(words)
    work, peers = options.work.absolute(), options.peers or list(PEERS)
    try:
        for peer in () if options.write else peers:
            code = run(peer, work, for_run)
            if code not in _JUDGED:
                return code
        if options.write:
            write(work)
        return max(summarize(peer, judge(peer, work)) for peer in peers)
    except TestbedError as broken:
        print(f"error: {broken}", file=sys.stderr)
        return broken.exit_code


def write(work: Path) -> None:
    """Write the page from all reports. Raise UsageError if a peer has none: its section would be lost."""
    seen = {peer: (version(peer), judge(peer, work)) for peer in PEERS}
    missing = [peer for peer, (_, judged) in seen.items() if not judged.tested]
    if missing:
        raise UsageError(f"there are no reports of {', '.join(missing)}; {PAGE.name} is unchanged", hint="tox -e peers")
    PAGE.write_text(page.render(seen))


def run(peer: str, work: Path, words: Sequence[str]) -> int:
    """Run `dra-testbed run` on a peer. Different arguments write different reports, so that a long run can be done in parts."""
    progress = Progress()
    file, needed = prepare(peer, work, progress), options(peer, progress)
    folder = _reports(peer, work) / (re.sub(r"\W+", "-", " ".join(words)).strip("-") or "core")
    program = shutil.which("dra-testbed") or str(Path(sys.executable).with_name("dra-testbed"))
    folder.parent.mkdir(parents=True, exist_ok=True)
    return process.call([program, "run", f"--driver={file}", f"--report={folder}", *needed, *words])


def judge(peer: str, work: Path) -> Judged:
    """Return the explained differences of a peer and the verdicts of its reports."""
    reports = differences.comparable(_read(_reports(peer, work)))
    where = reports[-1].environment if reports else None
    return Judged(differences.read(explanations(peer)), differences.newest(reports), where)


def summarize(peer: str, judged: Judged) -> int:
    """Print the result of a peer; return 1 if a difference is not explained or nothing was judged."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in differences.counted(judged.verdicts.values()))
    on = f" on Kubernetes {judged.where.kubernetes}" if judged.where else ""
    print(f"{peer} {version(peer)}{on}: {counts or 'no reports'}; {len(judged.failed)} differences")
    if not judged.tested:
        print("  nothing was judged")
    for each in judged.unexplained:
        print(f"  {each.id}: " + (f"{each.verdict}, not explained: {each.message}" if each.verdict else "no verdict"))
    for name in judged.outdated:
        print(f"  {name} passes; remove it from {explanations(peer).relative_to(PAGE.parents[1])}")
    return 1 if judged.unexplained or judged.outdated or not judged.tested else 0


def _reports(peer: str, work: Path) -> Path:
    """Return the folder with the reports about this version of a peer and these manifests."""
    return work / "reports" / peer / fingerprint(peer)


def _read(folder: Path) -> Iterator[DriverConformanceReport]:
    """Yield the reports in a folder. They are built from the events, which a killed run has, too."""
    for log in sorted(folder.glob(f"*/{events.FILE}")):
        with contextlib.suppress(Incomplete):
            yield report.build(events.read(log.parent))


def _handle_signals() -> None:
    """Handle signals that end us, except for those that are ignored (nohup)."""
    for each in STOPS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _stop)


def _stop(number: int, _: FrameType | None) -> NoReturn:
    """Exit after `dra-testbed run` has removed its testbed. Its own exit code after Ctrl-C looks like a verdict, so ours is the signal's.

    Later signals are ignored: tox sends another SIGINT after Ctrl-C, and the testbed would not be removed.
    """
    for each in STOPS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    _handle_signals()
    sys.exit(main(sys.argv[1:]))

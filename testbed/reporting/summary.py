"""The report as Markdown for the job summaries of CI systems, worst first: `python -m testbed.reporting.summary REPORT`.

For a run that failed before there was a report, the page has the last lines of its log.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.conformance import events, report_folder
from testbed.conformance.results import count_verdicts, decisive_subject, describe, describe_known
from testbed.errors import TestbedError
from testbed.models.report import ClusterReport, DriverConformanceReport, RequirementReport
from testbed.models.requirement_enums import Level, Subject, Verdict
from testbed.reporting import report

_MARKS = {"conformant": "✅", "partial": "🟡", "published": "🟡", "failed": "❌", "incomplete": "⚠️"}
_EXIT_CODES = {
    2: "wrong usage or configuration",
    3: "the harness or the environment failed, not the driver",
    4: "incomplete",
}
# Problems first, then passes, then what is not judged here. None: the run ended before there was a verdict.
_ORDER = (
    Verdict.FAIL, Verdict.ERROR, None, Verdict.TIMEOUT, Verdict.BLOCKED, Verdict.FLAKY, Verdict.EXCLUDED,
    Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.CLUSTER_UNSUPPORTED,
)  # fmt: skip
_LONGEST = 400  # characters of a cause; the report has all of it
_LOG_LINES = 20


def markdown(made: DriverConformanceReport) -> str:
    """Return the page: for the driver, then for the cluster, the result and all requirements with verdict, cause and evidence."""
    where, main = made.environment, decisive_subject(made.profile)
    facts = (
        f"{made.seconds:.1f} s",
        f"profile {made.profile}",
        f"Kubernetes {where.kubernetes}",
        f"{where.nodes} nodes of {where.provider}",
        f"{where.hardware} hardware",
        *([f"patience {made.patience:g}"] if made.patience != 1 else []),
        *([f"driver {made.subject.version}"] if made.subject.version else []),
    )
    name = made.subject.driver if main is Subject.DRIVER else "the cluster"
    lines = _section(name, [row for row in made.requirements if row.about is main], made, facts)
    if made.cluster and main is Subject.DRIVER:
        about = [row for row in made.requirements if row.about is Subject.CLUSTER]
        lines += ["", *_section("the cluster", about, made.cluster, ())]
    return "\n".join(lines) + "\n"


def _section(
    name: str,
    rows: Sequence[RequirementReport],
    found: DriverConformanceReport | ClusterReport,
    facts: Sequence[str],
) -> list[str]:
    ids = {row.id for row in rows}
    reasons = [reason for reason in found.reasons if reason.split(":")[0] not in ids]
    return [
        f"## {_MARKS[found.result]} {_plain(name)} is {found.result}: {describe(found.judged)}",
        "",
        _plain("; ".join((count_verdicts(rows), *facts))),
        *([""] if reasons else []),
        *(f"- {_plain(reason)}" for reason in reasons),
        "",
        "| requirement | verdict | sentence, and why it is not met | evidence |",
        "|---|---|---|---|",
        *map(_row, sorted(rows, key=_rank)),
    ]


def broken(code: int | None, log: str, *, kept: str = "") -> str:
    """Return the page of a run without a report. `kept` is the folder with the logs of a testbed that did not come up."""
    ended = "" if code is None else f" It ended with exit code {code}: {_EXIT_CODES.get(code, 'it was stopped')}."
    last = "\n".join(log.splitlines()[-_LOG_LINES:])
    shown = f"\n<pre>{html.escape(last, quote=False)}</pre>\n" if last else ""
    logs = f"\nThe testbed did not come up. Logs of its components: `{kept}`\n" if kept else ""
    return f"## ⚠️ No verdict\n\nThe run failed before there was a report.{ended}\n{logs}{shown}"


def page_of_folder(folder: Path, *, code: int | None = None, log: str = "") -> str:
    """Return the page for a report folder, even if it has only the events of a killed run; or the pages of several drivers in it."""
    several = sorted(each.parent for each in folder.glob(f"*/{events.FILE}"))
    if several and not (folder / events.FILE).exists():
        return "\n".join(page_of_folder(each, code=code, log=log) for each in several)
    with contextlib.suppress(TestbedError, ValueError, KeyError):  # no events, or events that are not a report
        found = events.read(folder)
        if events.suites_began(found):
            return markdown(report.build(found))
    kept = report_folder.bring_up_logs(folder)
    return broken(code, log, kept=str(kept.relative_to(folder)) if kept.is_dir() else "")


def main(words: Sequence[str] | None = None) -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(prog="python -m testbed.reporting.summary", description=__doc__)
    parser.add_argument("report", type=Path, help="the report folder")
    parser.add_argument("--exit-code", type=int, help="the exit code of `dra-testbed run`")
    parser.add_argument("--log", type=Path, help="the output of `dra-testbed run`")
    given = parser.parse_args(words)
    log = given.log.read_text(errors="replace") if given.log and given.log.exists() else ""
    sys.stdout.write(page_of_folder(given.report, code=given.exit_code, log=log))


def _rank(row: RequirementReport) -> tuple[int, int, str]:
    return _ORDER.index(row.verdict), list(Level).index(row.level), row.id


def _row(row: RequirementReport) -> str:
    passed = row.verdict == "pass"
    verdict = row.verdict if passed else f"**{row.verdict or 'no verdict'}**"
    evidence = "" if passed or not row.evidence else f"`{row.evidence.replace('`', '').replace('|', '')}`"
    return f"| {_plain(row.id)} {row.level} | {verdict} | {_explanation(row)} | {evidence} |"


def _explanation(row: RequirementReport) -> str:
    """Return the sentence, the first line of the message, and the likely cause."""
    said = row.message.splitlines()
    causes = [line.strip() for line in said[1:] if line.strip().startswith("likely cause:")]
    return "<br>→ ".join(_plain(text[:_LONGEST]) for text in (row.sentence, *said[:1], *causes, *describe_known(row)))


def _plain(text: str) -> str:
    """Return text for a cell of a table, with all markup escaped."""
    return re.sub(r"([\\`*_{}\[\]<>|~&])", r"\\\1", " ".join(text.split()))


if __name__ == "__main__":
    main()

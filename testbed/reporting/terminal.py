"""The verdict on the terminal: judged requirements, result and reasons. Also other tables, for the CLI."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from testbed.conformance.results import count_verdicts, decisive_subject, describe, describe_known
from testbed.models.report import ClusterReport, DriverConformanceReport, RequirementReport
from testbed.models.requirement_enums import Subject, Verdict
from testbed.progress import Screen

_COLOURS = {
    "pass": "green",
    "fail": "bold red",
    "flaky": "red",
    "error": "magenta",
    "timeout": "magenta",
    "blocked": "yellow",
}
_LAST_COLUMN = 20  # its least width
_NOT_JUDGED = (Verdict.NOT_APPLICABLE, Verdict.CLUSTER_UNSUPPORTED)
_NOT_LISTED = (Verdict.EXCLUDED, *_NOT_JUDGED)
_RESULTS = {
    "conformant": "bold green",
    "partial": "bold yellow",
    "published": "bold yellow",
    "failed": "bold red",
    "incomplete": "bold magenta",
}


def print_verdict(report: DriverConformanceReport, console: Console) -> None:
    """Print the requirements about the cluster with their result, then those about the driver with theirs.

    Each is a table of judged requirements, the result below it, and one line for each reason why others were not judged.
    """
    main = decisive_subject(report.profile)
    if report.cluster and main is Subject.DRIVER:
        about = [row for row in report.requirements if row.about is Subject.CLUSTER]
        _print_subject("the cluster", about, report.cluster, console)
    decisive = [row for row in report.requirements if row.about is main]
    name = report.subject.driver if main is Subject.DRIVER else "the cluster"
    _print_subject(name, decisive, report, console)
    where = f"profile {report.profile}, Kubernetes {report.environment.kubernetes}"
    patience = f", patience {report.patience:g}" if report.patience != 1 else ""
    console.print(f"{report.seconds:.1f} s, {where}, {report.environment.hardware} hardware{patience}", highlight=False)
    if report.subject.version:
        console.print(
            f"{report.subject.driver} {report.subject.version}", markup=False, highlight=False, soft_wrap=True
        )


def _print_subject(
    name: str, rows: Sequence[RequirementReport], found: DriverConformanceReport | ClusterReport, console: Console
) -> None:
    console.print(_table([row for row in rows if row.attempts or row.verdict not in _NOT_LISTED]))
    result = f"[{_RESULTS[found.result]}]{found.result}[/]: {describe(found.judged)}"
    console.print(f"{escape(name)} is {result} ({count_verdicts(rows)})", highlight=False, soft_wrap=True)
    ids = {row.id for row in rows}
    for line in (*_not_judged(rows), *(each for each in found.reasons if each.split(":")[0] not in ids)):
        console.print(f"  {escape(line)}", highlight=False)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on standard output. The last column uses the remaining width."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=column != columns[-1], overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console = Screen(highlight=False)
    whole = [max(map(len, each)) + 2 for each in zip(columns, *rows, strict=True)]
    console.width = max(
        console.width, sum(whole[:-1]) + _LAST_COLUMN
    )  # a terminal wraps long lines better than a table does
    console.print(table)


def _table(rows: Sequence[RequirementReport]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("requirement", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("sentence, and why it is not met", overflow="fold")
    for row in rows:
        verdict = row.verdict or "no verdict"
        seconds = f"{row.seconds:.1f}" if row.attempts else ""
        colour = _COLOURS.get(verdict, "dim")
        table.add_row(row.id, f"[{colour}]{verdict}[/]", seconds, escape(_explanation(row)))
    return table


def _not_judged(rows: Sequence[RequirementReport]) -> list[str]:
    """Return one line for each reason why requirements cannot be judged here."""
    counted = Counter((row.verdict, row.message) for row in rows if row.verdict in _NOT_JUDGED and not row.attempts)
    return [f"{count} {verdict}: {reason}" for (verdict, reason), count in counted.most_common()]


def _explanation(row: RequirementReport) -> str:
    said = row.message.splitlines()
    because = [line.strip() for line in said if line.strip().startswith("likely cause:")]
    return "\n→ ".join([row.sentence, *said[:1], *because, *describe_known(row)])

"""Make the report from the events of a run. A killed run has a report too, which says that it is incomplete."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from testbed.conformance import events, report_folder
from testbed.conformance.events import Event
from testbed.conformance.profiles import FULL
from testbed.conformance.results import (
    Scope,
    count,
    decisive_subject,
    is_narrowed,
    outdated,
    result_of,
    subject_of,
    unjudged_musts,
    was_tested,
)
from testbed.conformance.verdicts import Attempt, uninterrupted, verdict_of_attempts, worst
from testbed.errors import Incomplete
from testbed.models.report import ClusterReport, DriverConformanceReport, KnownFailure, RequirementReport
from testbed.models.requirement_enums import Level, Result, Subject, Tier, Verdict
from testbed.reporting import junit

FILE = "report.yaml"


def build(log: Sequence[Event]) -> DriverConformanceReport:
    """Return the report of these events. Raise Incomplete if there is no first event."""
    began = next((each for each in log if each["event"] == events.RUN_STARTED), None)
    if began is None:
        raise Incomplete(
            "the log has no event run-started, so there is nothing to report", hint="read the output of pytest"
        )
    tests: dict[str, list[Event]] = defaultdict(list)
    for each in log:
        if each["event"] == "test-finished":
            tests[each["id"]].append(each)
    profile = began.get("profile", FULL)
    known = {each["id"]: each for each in began.get("known", ())}
    rows = tuple(
        _row({**facts, "known": known.get(facts["id"])}, tests[facts["id"]], profile) for facts in _selected(log)
    )
    scope = _scope(began, rows, finished=log[-1]["event"] == "run-finished")
    decisive = [row for row in rows if row.about is decisive_subject(profile)]
    result = result_of(decisive, scope)
    return DriverConformanceReport.model_validate(
        {
            **{part: began[part] for part in ("generated", "subject", "environment", "patience")},
            "companions": began.get("companions", ()),
            "profile": profile,
            "request": began.get("request", {}),
            "result": result,
            "judged": count(decisive),
            "reasons": (
                *_before_the_suites(log),
                *_reasons(decisive, result, scope),
                *(f"known: {why}" for row in rows if (why := outdated(row, began["generated"]["at"]))),
            ),
            "cluster": _cluster(rows, scope),
            "finished": scope.finished,
            "seconds": round(log[-1]["time"] - began["time"], 1),
            "statistics": _statistics(rows),
            "requirements": rows,
        },
        strict=False,
    )


def write(folder: Path) -> DriverConformanceReport:
    """Write report.yaml and junit.xml from the events in the folder."""
    made = build(events.read(folder))
    content = made.model_dump(mode="json", by_alias=True)
    report_folder.replace_file(folder / FILE, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120))
    report_folder.replace_file(folder / junit.FILE, junit.render(made))
    return made


def _selected(log: Sequence[Event]) -> list[dict[str, Any]]:
    """Return all requirements of the run, with what was decided about them before the tests."""
    found = {facts["id"]: facts for each in log if each["event"] == "selected" for facts in each["requirements"]}
    return [found[key] for key in sorted(found)]


def _row(facts: dict[str, Any], finished: list[Event], profile: str) -> RequirementReport:
    by_test: dict[str, list[Event]] = defaultdict(list)
    for each in finished:
        by_test[each["test"]].append(each)
    cases = facts.get("tests", [])
    decided = Verdict(facts["verdict"]) if facts.get("verdict") else None
    # A requirement with an unfinished case has no verdict, unless another case failed.
    open_cases = {*cases} - {test for test, attempts in by_test.items() if not _waits_for_repetition(attempts)}
    verdicts = [
        verdict_of_attempts(uninterrupted(_attempts(by_test[test]))) for test in by_test if test not in open_cases
    ]
    verdict = worst(verdicts) if verdicts and (not open_cases or Verdict.FAIL in verdicts) else decided
    explaining = _explaining(finished, verdict)
    message = next((each["message"] for each in explaining if each["message"]), facts.get("reason", ""))
    message += _beside(finished)
    same_first = sorted(finished, key=lambda each: each["verdict"] != verdict)
    if verdict is Verdict.PASS and facts.get("left_out"):
        verdict, message = (
            Verdict.EXCLUDED,
            f"passed, but some of its cases were not selected: {facts['left_out']}",
        )
    return RequirementReport(
        id=facts["id"],
        sentence=facts["sentence"],
        level=Level(facts["level"]),
        tier=Tier(facts["tier"]),
        about=subject_of(Subject(facts.get("about", Subject.DRIVER)), profile),
        source=facts["source"],
        tests=tuple(cases),
        verdict=verdict,
        seconds=round(sum(each["seconds"] for each in finished), 3),
        attempts=max((len(attempts) for attempts in by_test.values()), default=0),
        message=message
        if verdict is not Verdict.PASS
        else "; ".join(each["note"] for each in finished if each.get("note")),
        exempt=facts.get("exempt", False),
        known=_known_failure(facts["known"]),
        evidence=next((each["evidence"] for each in same_first if each["evidence"]), ""),
    )


def _known_failure(declared: dict[str, str] | None) -> KnownFailure | None:
    return KnownFailure(**{name: declared[name] for name in declared if name != "id"}) if declared else None


def _attempts(finished: Sequence[Event]) -> list[Attempt]:
    return [Attempt(Verdict(each["verdict"]), each.get("component", "")) for each in finished]


def _waits_for_repetition(attempts: Sequence[Event]) -> bool:
    """Return True if the run ended before a test was repeated as often as its verdict needs."""
    return bool(attempts[-1].get("to_repeat"))


def _beside(finished: Sequence[Event]) -> str:
    """Return the line that names the tests that ran beside a failure that was repeated; '' if there is none."""
    names = dict.fromkeys(name for each in finished for name in each.get("beside", ()))
    return f"\n  beside the first failure ran: {', '.join(names)}" if names else ""


def _explaining(finished: Sequence[Event], verdict: Verdict | None) -> list[Event]:
    """Return the events in the order in which they explain the verdict: the same verdict first, then the last one first."""
    same = [each for each in finished if each["verdict"] == verdict]
    others = [each for each in finished if each["verdict"] != verdict]
    return [*reversed(same), *reversed(others)]


def _scope(began: Event, rows: Sequence[RequirementReport], *, finished: bool) -> Scope:
    request = began.get("request", {})
    return Scope(
        finished=finished,
        tested=any(map(was_tested, rows)),
        narrowed=is_narrowed(began.get("profile", FULL), request.get("keyword"), request.get("failed")),
        read_only=began["environment"].get("read_only", False),
        fail_on=request.get("fail_on", "must"),
    )


def _cluster(rows: Sequence[RequirementReport], scope: Scope) -> ClusterReport | None:
    """Return the result of the requirements about the cluster; None if there are none."""
    about = [row for row in rows if row.about is Subject.CLUSTER]
    if not about:
        return None
    result = result_of(about, scope)
    return ClusterReport(result=result, judged=count(about), reasons=_reasons(about, result, scope))


def _statistics(rows: Sequence[RequirementReport]) -> dict[str, int]:
    counted = Counter(row.verdict or "no-verdict" for row in rows)
    return {str(name): counted[name] for name in (*Verdict, "no-verdict") if counted[name]}


def _before_the_suites(log: Sequence[Event]) -> list[str]:
    """Return why there was no testbed; nothing if the suites began."""
    if events.suites_began(log):
        return []
    failed = next((each for each in log if each["event"] == events.TESTBED_FAILED), None)
    if failed is None:
        return ["the run ended before the first test"]
    return [
        f"the testbed did not come up: {failed['why']}" + (f" ({failed['evidence']})" if failed["evidence"] else "")
    ]


def _reasons(rows: Sequence[RequirementReport], result: Result, scope: Scope) -> tuple[str, ...]:
    """Return why the result is not better, worst first."""
    harmless = {Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.CLUSTER_UNSUPPORTED, Verdict.EXCLUDED}
    ordered = sorted((row for row in rows if row.verdict not in harmless), key=lambda row: _rank(row.verdict))
    reasons = [f"{row.id}: {row.verdict or 'no verdict'}" for row in ordered]
    if not scope.finished:
        reasons.insert(0, "the run did not finish")
    if not scope.tested:
        reasons.append("no requirement was tested" if scope.finished else "no requirement was tested completely")
    if unjudged := _statistics(unjudged_musts(rows)):
        counts = ", ".join(f"{number} {verdict}" for verdict, number in unjudged.items())
        reasons.append(f"{sum(unjudged.values())} applicable MUST not judged: {counts}")
    if result is Result.PARTIAL and scope.narrowed:
        reasons.append("the run was limited to some requirements")
    return tuple(reasons)


def _rank(verdict: Verdict | None) -> int:
    return list(Verdict).index(verdict) if verdict else 0

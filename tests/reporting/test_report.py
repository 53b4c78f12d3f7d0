from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from rich.console import Console

from testbed.conformance import events, report_folder
from testbed.conformance.events import Event, EventLog
from testbed.conformance.results import exit_code
from testbed.errors import Incomplete, UsageError
from testbed.models.report import DriverConformanceReport
from testbed.models.requirement_enums import Result, Verdict
from testbed.reporting import earlier_report, junit, report, summary, terminal

STARTED: Event = {
    "event": "run-started",
    "time": 100.0,
    "generated": {"at": "2026-01-01T00:00:00+00:00", "suite": "1", "catalogue": "sha256:0", "python": "3", "pytest": "9"},
    "subject": {"driver": "gpu.example", "driver_file": "gpu", "digest": "sha256:1"},
    "environment": {
        "testbed": "t", "provider": "local", "kubernetes": "v1.37.0", "nodes": 2, "runtime": "containerd", "feature_gates": {},
        "hardware": "synthetic",
    },
    "patience": 1.0,
}  # fmt: skip


def _known(number: int, tests: tuple[str, ...] = (), **facts: Any) -> dict[str, Any]:
    row = {"id": f"T-{number:03}", "sentence": "It works.", "level": "MUST", "tier": "e2e", "source": "here"}
    return {**row, "tests": list(tests or [f"a.py::test_{number}"]), "verdict": None, "reason": "", **facts}


def _done(number: int, verdict: str, test: str = "", **facts: Any) -> Event:
    return {
        "event": "test-finished", "time": 101.0, "id": f"T-{number:03}", "test": test or f"a.py::test_{number}",
        "verdict": verdict, "seconds": 1.5, "message": "", "evidence": "", **facts,
    }  # fmt: skip


def _log(*middle: Event, known: list[dict[str, Any]], end: bool = True) -> list[Event]:
    last = [{"event": "run-finished", "time": 110.0, "status": 0}] if end else []
    return [STARTED, {"event": "selected", "time": 100.1, "requirements": known, "digest": "x"}, *middle, *last]


def _verdicts(made: DriverConformanceReport) -> list[Verdict | None]:
    return [row.verdict for row in made.requirements]


def test_a_run_that_passed_is_conformant() -> None:
    made = report.build(_log(_done(1, "pass"), known=[_known(1)]))
    assert (made.result, made.finished, made.seconds) == (Result.CONFORMANT, True, 10.0)
    assert made.statistics == {"pass": 1}
    assert made.reasons == ()


def test_a_truncated_log_never_gives_a_green_report() -> None:
    whole = _log(_done(1, "pass"), _done(2, "pass"), known=[_known(1), _known(2)])
    for length in range(1, len(whole)):
        made = report.build(whole[:length])
        assert made.result is Result.INCOMPLETE
        assert exit_code(made) == 4
        assert "the run did not finish" in made.reasons
    assert report.build(whole).result is Result.CONFORMANT


def test_a_requirement_without_a_verdict_is_named() -> None:
    made = report.build(_log(_done(1, "pass"), known=[_known(1), _known(2)], end=False))
    assert _verdicts(made) == [Verdict.PASS, None]
    assert "T-002: no verdict" in made.reasons


def test_what_was_decided_before_the_run_is_in_the_report() -> None:
    free = _known(2, verdict="not-applicable", reason="the driver file does not declare health")
    made = report.build(_log(_done(1, "pass"), known=[_known(1), free]))
    assert made.requirements[1].message == "the driver file does not declare health"
    assert made.result is Result.CONFORMANT


def test_all_cases_of_a_requirement_count() -> None:
    cases = ("a.py::test[x]", "a.py::test[y]")
    known = [_known(1, cases)]
    both = [_done(1, "pass", cases[0]), _done(1, "fail", cases[1], message="wrong", evidence="evidence/T-001")]
    made = report.build(_log(*both, known=known))
    assert (made.requirements[0].verdict, made.requirements[0].message) == (Verdict.FAIL, "wrong")
    assert made.requirements[0].evidence == "evidence/T-001"
    assert _verdicts(report.build(_log(both[0], known=known))) == [None]


def test_a_failure_before_a_pass_is_flaky() -> None:
    made = report.build(_log(_done(1, "fail", message="lost a race"), _done(1, "pass"), known=[_known(1)]))
    assert (made.requirements[0].verdict, made.requirements[0].attempts) == (Verdict.FLAKY, 2)
    assert made.requirements[0].message == "lost a race"
    assert made.result is Result.INCOMPLETE


def test_a_failure_that_the_run_did_not_repeat_is_no_verdict() -> None:
    failed = _done(1, "fail", message="no device", to_repeat=True)
    passed = _done(1, "pass", to_repeat=True)
    for repetitions in ([], [passed], [passed] * 2):
        made = report.build(_log(failed, *repetitions, known=[_known(1)], end=False))
        assert (made.requirements[0].verdict, made.result) == (None, Result.INCOMPLETE)
        assert made.requirements[0].message == "no device"
    again = report.build(_log(failed, _done(1, "fail"), known=[_known(1)], end=False))
    assert (again.requirements[0].verdict, again.result) == (Verdict.FAIL, Result.FAILED)


def test_an_attempt_that_a_failing_component_interrupted_does_not_count() -> None:
    interrupted = _done(1, "error", message="the scheduler died", component="kube-scheduler", to_repeat=True)
    last = {**interrupted, "to_repeat": False}
    for attempts, verdict in (
        ([interrupted, _done(1, "pass")], Verdict.PASS),
        ([interrupted, _done(1, "fail")], Verdict.FAIL),
        ([_done(1, "fail", to_repeat=True), last], Verdict.FAIL),
        ([interrupted, last], Verdict.ERROR),
        ([interrupted], None),
    ):
        made = report.build(_log(*attempts, known=[_known(1)]))
        assert made.requirements[0].verdict is verdict


def test_a_failure_before_an_error_is_a_failure_with_its_message() -> None:
    again = _done(1, "error", message="no answer", evidence="evidence/later")
    tried = [_done(1, "fail", message="no device", evidence="evidence/first"), again]
    made = report.build(_log(*tried, known=[_known(1)])).requirements[0]
    assert (made.verdict, made.message, made.evidence) == (Verdict.FAIL, "no device", "evidence/first")


def test_a_run_in_which_all_tests_found_nothing_to_judge_is_incomplete() -> None:
    made = report.build(_log(_done(1, "not-applicable", message="no parts"), known=[_known(1)]))
    assert (made.result, made.reasons) == (Result.INCOMPLETE, ("no requirement was tested",))
    assert made.requirements[0].message == "no parts"


def test_a_requirement_with_deselected_cases_is_excluded_unless_one_failed() -> None:
    known = [_known(1, left_out=2), _known(2)]
    made = report.build(_log(_done(1, "pass"), _done(2, "pass"), known=known))
    assert _verdicts(made) == [Verdict.EXCLUDED, Verdict.PASS]
    assert made.requirements[0].message == "passed, but some of its cases were not selected: 2"
    assert made.result is Result.PARTIAL
    failed = report.build(_log(_done(1, "fail"), _done(2, "pass"), known=known))
    assert failed.result is Result.FAILED


def test_excluded_requirements_make_it_partial_and_are_counted() -> None:
    made = report.build(_log(_done(1, "pass"), known=[_known(1), _known(2, verdict="excluded")]))
    assert (made.result, made.reasons) == (Result.PARTIAL, ("1 applicable MUST not judged: 1 excluded",))


def test_driver_and_cluster_are_judged_apart() -> None:
    known = [_known(1), _known(2, about="cluster"), _known(3, level="SHOULD"), _known(4, exempt=True)]
    free = {**known[3], "verdict": "not-applicable", "reason": "the driver file exempts the driver from cdi"}
    tests = [_done(1, "pass"), _done(2, "fail"), _done(3, "fail")]
    made = report.build(_log(*tests, known=[*known[:3], free]))
    assert (made.result, made.cluster and made.cluster.result) == (Result.CONFORMANT, Result.FAILED)
    assert exit_code(made) == 0
    data = made.model_dump(mode="json", by_alias=True)
    assert data["judged"]["must"] == {"passed": 1, "applicable": 1}
    assert (data["judged"]["should"], data["judged"]["exempt"]) == ({"passed": 0, "applicable": 1}, 1)
    assert data["cluster"]["judged"]["must"] == {"passed": 0, "applicable": 1}
    assert [row["about"] for row in data["requirements"]] == ["driver", "cluster", "driver", "driver"]
    assert ElementTree.fromstring(junit.render(made))[0].get("tests") == "4"


def test_a_failed_driver_does_not_fail_the_cluster() -> None:
    made = report.build(_log(_done(1, "fail"), _done(2, "pass"), known=[_known(1), _known(2, about="cluster")]))
    assert (made.result, made.cluster and made.cluster.result) == (Result.FAILED, Result.CONFORMANT)


def test_in_the_profile_cluster_every_requirement_judges_the_cluster() -> None:
    log = _log(_done(1, "fail"), known=[_known(1)])
    made = report.build([{**log[0], "profile": "cluster"}, *log[1:]])
    assert made.cluster
    assert (made.result, made.cluster.result, exit_code(made)) == (Result.FAILED, Result.FAILED, 1)


@pytest.mark.parametrize(
    ("began", "result"),
    [
        ({"profile": "smoke"}, Result.PARTIAL),
        ({"request": {"keyword": "T-001"}}, Result.PARTIAL),
        ({"environment": {**STARTED["environment"], "read_only": True}}, Result.PUBLISHED),
        ({"profile": "core"}, Result.CONFORMANT),
    ],
)
def test_what_was_asked_for_limits_the_result(began: dict[str, Any], result: Result) -> None:
    log = _log(_done(1, "pass"), known=[_known(1)])
    assert report.build([{**log[0], **began}, *log[1:]]).result is result


def test_the_screen_shows_the_cluster_apart_from_the_driver() -> None:
    made = report.build(_log(_done(1, "pass"), _done(2, "fail"), known=[_known(1), _known(2, about="cluster")]))
    console = Console(width=120)
    with console.capture() as shown:
        terminal.print_verdict(made, console)
    cluster, _, driver = shown.get().partition("the cluster is failed: MUST 0 of 1 (1 fail)\n")
    assert "T-002" in cluster
    assert "T-001" not in cluster
    assert "T-001" in driver
    assert "T-002" not in driver
    assert "gpu.example is conformant: MUST 1 of 1 (1 pass)\n" in driver


def test_a_run_that_did_not_begin_has_no_report() -> None:
    with pytest.raises(Incomplete):
        report.build([])


def test_a_report_is_written_from_a_log_that_is_truncated_anywhere(tmp_path: Path) -> None:
    whole = "".join(json.dumps(each) + "\n" for each in _log(_done(1, "pass"), known=[_known(1)]))
    begun = whole.index("\n") + 1
    for cut in range(begun, len(whole), 7):
        (tmp_path / events.FILE).write_text(whole[:cut])
        made = report.write(tmp_path)
        assert made.result is Result.INCOMPLETE
        assert yaml.safe_load((tmp_path / "report.yaml").read_text())["result"] == "incomplete"


def test_the_same_events_give_the_same_files(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    report_folder.start_report(log.folder)
    for each in _log(_done(1, "fail", message="nö"), known=[_known(1)]):
        log.write(**{key: value for key, value in each.items() if key != "time"})
    report.write(tmp_path)
    first = [(tmp_path / name).read_bytes() for name in ("report.yaml", "junit.xml")]
    report.write(tmp_path)
    assert [(tmp_path / name).read_bytes() for name in ("report.yaml", "junit.xml")] == first


def test_a_damaged_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    (tmp_path / events.FILE).write_text('{"event": "run-started"}\n{"eve\n{"event": "x"}\n')
    with pytest.raises(UsageError, match=r"events\.jsonl:2 is damaged"):
        events.read(tmp_path)


def test_only_a_report_folder_is_emptied(tmp_path: Path) -> None:
    (tmp_path / "evidence").mkdir()
    report_folder.discard(tmp_path)
    assert (tmp_path / "evidence").exists()
    (tmp_path / events.FILE).write_text(json.dumps(STARTED) + "\n")
    report_folder.discard(tmp_path)
    assert not (tmp_path / "evidence").exists()


@pytest.mark.parametrize("verdict", [None, *Verdict])
def test_the_counts_in_junit_match_its_cases(verdict: Verdict | None) -> None:
    facts: dict[str, Any] = (
        {} if verdict in (None, Verdict.PASS, Verdict.FAIL, Verdict.ERROR) else {"verdict": verdict, "reason": "why"}
    )
    done = [_done(1, verdict.value, message="a < b & \x00c")] if verdict and not facts else []
    root = ElementTree.fromstring(junit.render(report.build(_log(*done, known=[_known(1, **facts)]))))
    suite = root[0]
    _check_xunit2(root)
    outcomes = [child.tag for child in suite.findall("testcase")[0]]
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    assert {key: int(suite.get(key, "")) for key in kinds} == {key: outcomes.count(tag) for key, tag in kinds.items()}
    assert (outcomes == []) == (verdict is Verdict.PASS)


def _check_xunit2(root: ElementTree.Element) -> None:
    """Check the parts of the schema that we use: order of elements, known and required attributes."""
    allowed = {
        "testsuites": ({"name"}, {"testsuite"}),
        "testsuite": (
            {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"}, {"properties", "testcase"},
        ),
        "properties": (set(), {"property"}),
        "property": ({"name", "value"}, set()),
        "testcase": ({"classname", "name", "time"}, {"failure", "error", "skipped"}),
        "failure": ({"message", "type"}, set()),
        "error": ({"message", "type"}, set()),
        "skipped": ({"message"}, set()),
    }  # fmt: skip
    for element in root.iter():
        attributes, children = allowed[element.tag]
        assert set(element.keys()) == attributes
        assert {child.tag for child in element} <= children
    assert [child.tag for child in root[0]] == ["properties", "testcase"]


def test_the_table_shows_verdict_cause_and_result() -> None:
    message = "expected pod a to run\n  likely cause: no socket [x]\n  last seen: Pending"
    made = report.build(_log(_done(1, "fail", message=message), known=[_known(1)]))
    console = Console(width=120)
    with console.capture() as shown:
        terminal.print_verdict(made, console)
    text = shown.get()
    assert "T-001" in text
    assert "→ expected pod a to run" in text
    assert "→ likely cause: no socket [x]" in text
    assert "gpu.example is failed: MUST 0 of 1 (1 fail)\n" in text
    assert "10.0 s, profile full, Kubernetes v1.37.0, synthetic hardware" in text


def test_longer_timeouts_are_shown_with_the_result() -> None:
    made = report.build(_log(_done(1, "pass"), known=[_known(1)])).model_copy(update={"patience": 100.0})
    console = Console(width=120)
    with console.capture() as shown:
        terminal.print_verdict(made, console)
    assert "synthetic hardware, patience 100\n" in shown.get()
    assert "synthetic hardware; patience 100" in summary.markdown(made)


def test_the_table_counts_excluded_requirements_without_listing_them() -> None:
    left_out = _known(2, verdict="excluded", reason="not selected")
    made = report.build(_log(_done(1, "pass"), known=[_known(1), left_out]))
    console = Console(width=120)
    with console.capture() as shown:
        terminal.print_verdict(made, console)
    assert "T-001" in shown.get()
    assert "T-002" not in shown.get()
    assert "MUST 1 of 2 (1 pass, 1 excluded)" in shown.get()


def test_the_table_groups_unjudged_requirements_by_reason_and_the_report_lists_all() -> None:
    undeclared = [_known(n, verdict="not-applicable", reason="the driver file does not declare [x]") for n in (2, 3)]
    off = _known(4, verdict="cluster-unsupported", reason="needs A, which is off")
    made = report.build(_log(_done(1, "pass"), known=[_known(1), *undeclared, off]))
    console = Console(width=120)
    with console.capture() as shown:
        terminal.print_verdict(made, console)
    ids = ["T-001", "T-002", "T-003", "T-004"]
    assert [each for each in ids if each in shown.get()] == ["T-001"]
    assert "  2 not-applicable: the driver file does not declare [x]\n" in shown.get()
    assert "  1 cluster-unsupported: needs A, which is off\n" in shown.get()
    assert [row.id for row in made.requirements] == ids


def test_known_failures_are_shown_and_outdated_ones_reported() -> None:
    known = [
        {"id": "T-001", "reason": "the pool is ignored", "link": "https://a.example/12"},
        {"id": "T-002", "reason": "slow"},
    ]
    log = _log(_done(1, "fail"), _done(2, "pass"), known=[_known(1), _known(2)])
    made = report.build([{**log[0], "known": known, "request": {"known": True}}, *log[1:]])
    console = Console(width=120)
    with console.capture() as shown:
        terminal.print_verdict(made, console)
    assert "→ known: the pool is ignored (https://a.example/12)" in shown.get()
    assert made.result is Result.FAILED
    assert "known: T-002 passes now: remove it from spec.known of the driver file" in made.reasons
    assert exit_code(made) == 1


def test_what_failed_or_has_no_answer_can_be_read_from_a_report(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    report_folder.start_report(log.folder)
    known = [_known(number) for number in (1, 2, 3)]
    for each in [*_log(_done(1, "fail"), _done(2, "pass"), known=known, end=False)]:
        log.write(**{key: value for key, value in each.items() if key != "time"})
    report.write(tmp_path)
    assert (
        earlier_report.failed_in(tmp_path) == earlier_report.failed_in(tmp_path / "report.yaml") == ("T-001", "T-003")
    )


@pytest.mark.parametrize("content", ["", "[", "kind: Pod"])
def test_a_report_that_cannot_be_read_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "report.yaml").write_text(content)
    with pytest.raises(UsageError, match=r"report\.yaml is not a report"):
        earlier_report.failed_in(tmp_path)


@pytest.mark.parametrize("name", ["", "nonexistent", "nonexistent/report.yaml"])
def test_a_report_that_does_not_exist_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"there is no such file: {tmp_path / (name or 'report.yaml')}"):
        earlier_report.failed_in(tmp_path / name)


def test_a_report_without_failures_is_refused(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    report_folder.start_report(log.folder)
    for each in _log(_done(1, "pass"), known=[_known(1)]):
        log.write(**{key: value for key, value in each.items() if key != "time"})
    report.write(tmp_path)
    with pytest.raises(UsageError, match="nothing failed in"):
        earlier_report.failed_in(tmp_path)

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.conformance import events, report_folder
from testbed.models.report import DriverConformanceReport
from testbed.models.requirement_enums import Verdict
from testbed.reporting import summary
from testbed.runs.early_report import EarlyReport
from tests.reporting.test_report import STARTED


def made(
    *rows: dict[str, Any],
    result: str = "failed",
    reasons: tuple[str, ...] = (),
    cluster: dict[str, Any] | None = None,
) -> DriverConformanceReport:
    known = {"sentence": "It works.", "level": "MUST", "tier": "e2e", "source": "here", "verdict": "pass"}
    return DriverConformanceReport.model_validate(
        {
            "generated": {"at": "2026-01-01", "suite": "1", "catalogue": "sha256:0", "python": "3", "pytest": "9"},
            "subject": {"driver": "gpu.example", "driver_file": "gpu", "digest": "sha256:1"},
            "environment": {
                "testbed": "t", "provider": "local", "kubernetes": "v1.37.1", "nodes": 2, "runtime": "c", "hardware": "synthetic",
            },
            "result": result,
            "reasons": reasons,
            "cluster": cluster,
            "finished": True,
            "seconds": 8.25,
            "patience": 1.0,
            "statistics": {"pass": 1, "fail": 1},
            "requirements": [{**known, **row} for row in rows],
        },
        strict=False,
    )  # fmt: skip


def rows_of(page: str) -> list[list[str]]:
    """Return the cells below the head of the table, split at every bar without a backslash, as GitHub does."""
    lines = [line for line in page.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.replace("\\|", "&bar;").strip("|").split("|")] for line in lines]


def test_the_first_line_has_driver_and_result_and_the_next_has_counts_and_environment() -> None:
    page = summary.markdown(made({"id": "T-001"}, reasons=("the run did not finish", "T-001: fail")))

    assert page.startswith("## ❌ gpu.example is failed: MUST 0 of 0\n")
    assert "1 pass; 8.2 s; profile full; Kubernetes v1.37.1; 2 nodes of local; synthetic hardware" in page
    assert "- the run did not finish\n" in page
    assert "- T-001" not in page


def test_the_cluster_has_a_table_and_a_result_of_its_own() -> None:
    cluster = {"result": "failed", "judged": {"must": {"passed": 0, "applicable": 1}}}
    rows = {"id": "T-001"}, {"id": "T-002", "about": "cluster", "verdict": "fail"}
    page = summary.markdown(made(*rows, result="conformant", cluster=cluster))
    driver, _, about_cluster = page.partition("\n## ❌ the cluster is failed: MUST 0 of 1\n")

    assert driver.startswith("## ✅ gpu.example is conformant")
    assert "T-001" in driver
    assert "T-002" not in driver
    assert "| T-002 MUST | **fail** |" in about_cluster


def test_failures_come_first_with_their_cause_and_evidence() -> None:
    said = "expected two devices\n  last seen: one\n  likely cause: the driver gives everybody the first"
    failed = {"id": "T-002", "verdict": "fail", "message": said, "evidence": "evidence/T-002"}

    passed, free = {"id": "T-001"}, {"id": "T-000", "verdict": "not-applicable", "message": "no health"}
    rows = rows_of(summary.markdown(made(free, passed, failed)))

    assert [row[0] for row in rows] == ["T-002 MUST", "T-001 MUST", "T-000 MUST"]
    assert rows[0][1:] == [
        "**fail**",
        "It works.<br>→ expected two devices<br>→ likely cause: the driver gives everybody the first",
        "`evidence/T-002`",
    ]
    assert rows[1][1:] == ["pass", "It works.", ""]
    assert rows[2][2] == "It works.<br>→ no health"


@pytest.mark.parametrize("verdict", [None, *Verdict])
def test_every_verdict_has_its_place(verdict: Verdict | None) -> None:
    rows = rows_of(summary.markdown(made({"id": "T-001", "verdict": verdict})))

    assert rows[0][1].strip("*") == (verdict or "no verdict")


def test_messages_of_the_driver_are_never_markup() -> None:
    message = "a | b <img src=x> `c` *d* [e](f) \\| &lt;"
    (row,) = rows_of(summary.markdown(made({"id": "T-001", "verdict": "fail", "message": message})))

    assert len(row) == 4
    assert row[2] == r"It works.<br>→ a &bar; b \<img src=x\> \`c\` \*d\* \[e\](f) \\&bar; \&lt;"


def test_a_long_cause_is_shortened() -> None:
    page = summary.markdown(made({"id": "T-001", "verdict": "fail", "message": "x" * 100_000}))

    assert len(page) < 2000


def test_the_page_of_a_run_without_a_report_has_the_last_lines_of_its_log(tmp_path: Path) -> None:
    log = "\n".join(f"line {number}" for number in range(100)) + "\n<b>kubelet</b> died\n"
    page = summary.page_of_folder(tmp_path / "nowhere", code=3, log=log)

    assert "## ⚠️ No verdict" in page
    assert "exit code 3: the harness or the environment failed, not the driver" in page
    assert "&lt;b&gt;kubelet&lt;/b&gt; died" in page
    assert "line 99" in page
    assert "line 50" not in page


def test_the_page_of_a_testbed_that_did_not_come_up_names_its_logs(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    report_folder.keep_bring_up_logs(tmp_path / "report", tmp_path / "logs", "no nodes")

    assert "`evidence/bring-up`" in summary.page_of_folder(tmp_path / "report", code=3)
    assert "evidence" not in summary.page_of_folder(tmp_path / "other", code=3)


def test_an_early_report_is_not_a_verdict(tmp_path: Path) -> None:
    first = {name: value for name, value in STARTED.items() if name not in ("event", "time")}
    EarlyReport(tmp_path, first).begin()

    assert "No verdict" in summary.page_of_folder(tmp_path, code=137)


@pytest.mark.parametrize("content", ["", "{}\n", '{"event": "run-started", "time": 1}\n', "nonsense\n"])
def test_events_of_no_run_give_no_verdict(tmp_path: Path, content: str) -> None:
    (tmp_path / events.FILE).write_text(content)

    assert "No verdict" in summary.page_of_folder(tmp_path)


def test_the_command_prints_the_page_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = made({"id": "T-001"}).model_dump(mode="json")
    facts = {part: report[part] for part in ("generated", "subject", "environment", "patience")}
    known = {key: report["requirements"][0][key] for key in ("id", "sentence", "level", "tier", "source")}
    log = [
        {"event": "run-started", "time": 1.0, **facts},
        {"event": "selected", "time": 1.0, "requirements": [{**known, "tests": ["a.py::test_1"]}], "digest": "x"},
    ]
    (tmp_path / events.FILE).write_text("".join(json.dumps(each) + "\n" for each in log))
    summary.main([str(tmp_path), "--exit-code", "4", "--log", str(tmp_path / "none.log")])

    page = capsys.readouterr().out
    assert "## ⚠️ gpu.example is incomplete" in page
    assert "| T-001 MUST | **no verdict** | It works. |" in page

"""junit.xml for CI systems, made from the report. It is valid for the xunit2 schema."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml  # we write XML here and never read it

from testbed.models.report import DriverConformanceReport, RequirementReport

FILE = "junit.xml"
_FAILURES = {"fail", "flaky"}
_SKIPS = {"excluded", "not-applicable", "cluster-unsupported"}
# Characters that XML 1.0 does not allow, even escaped.
_INVALID = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: DriverConformanceReport) -> str:
    """Return the document."""
    rows = report.requirements
    errors = sum(_outcome(row) == "error" for row in rows)
    suite = Xml.Element(
        "testsuite",
        name=f"dra-testbed {report.subject.driver}",
        tests=str(len(rows)),
        failures=str(sum(_outcome(row) == "failure" for row in rows)),
        errors=str(errors),
        skipped=str(sum(_outcome(row) == "skipped" for row in rows)),
        time=f"{report.seconds:.3f}",
        timestamp=report.generated.at,
        hostname=_clean(report.environment.testbed),
    )
    properties = Xml.SubElement(suite, "properties")
    cluster = [("cluster-result", report.cluster.result)] if report.cluster else []
    for name, value in (("result", report.result), *cluster, ("kubernetes", report.environment.kubernetes)):
        Xml.SubElement(properties, "property", name=name, value=value)
    for row in rows:
        _case(suite, row)
    root = Xml.Element("testsuites", name="dra-testbed")
    root.append(suite)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: Xml.Element, row: RequirementReport) -> None:
    where = row.tests[0].split("::")[0] if row.tests else row.tier
    name = _clean(f"{row.id} {row.sentence}")
    case = Xml.SubElement(suite, "testcase", classname=_clean(where), name=name, time=f"{row.seconds:.3f}")
    outcome = _outcome(row)
    if outcome:
        said = _clean(row.message) or "the run ended before there was a verdict"
        detail = Xml.SubElement(case, outcome, message=f"{row.verdict or 'no verdict'}: {said.splitlines()[0]}")
        if outcome != "skipped":
            detail.set("type", row.verdict or "no-verdict")
        detail.text = said


def _outcome(row: RequirementReport) -> str:
    if row.verdict == "pass":
        return ""
    if row.verdict in _SKIPS:
        return "skipped"
    return "failure" if row.verdict in _FAILURES else "error"


def _clean(text: str) -> str:
    return _INVALID.sub("�", text)

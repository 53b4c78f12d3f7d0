"""The report (kind DriverConformanceReport): what was judged, where, how, and what came out. We publish it; others check it.

`conformance` makes it from the events of a run.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from testbed.models.requirement_enums import Level, Result, Tier, Verdict
from testbed.models.run_request import ReportedRequest
from testbed.models.strict import API_VERSION, Published


class Generated(Published):
    """When, and by which state of the suites."""

    at: str = Field(description="when the run began, in UTC")
    suite: str = Field(description="version of dra-testbed")
    catalogue: str = Field(description="digest of all requirements that were known")
    python: str
    pytest: str


class DriverUnderTest(Published):
    """Who was judged."""

    driver: str
    driver_file: str = Field(description="the name in the driver file")
    digest: str = Field(description="digest of the driver file")


class Environment(Published):
    """Where it was judged."""

    testbed: str
    provider: str
    kubernetes: str
    nodes: int
    runtime: str
    feature_gates: dict[str, bool] = Field(default={})
    gates_assumed: tuple[str, ...] = Field(
        (), description="feature gates that nobody could look at: taken to be as this Kubernetes has them by itself"
    )
    hardware: Literal["synthetic", "unknown"] = Field(
        "unknown", description="synthetic where the driver is known to pretend; of all other drivers nothing is known"
    )


class RequirementReport(Published):
    """One requirement. No verdict means that the run ended before there was one."""

    id: str
    sentence: str
    level: Level
    tier: Tier
    source: str
    tests: tuple[str, ...] = ()
    verdict: Verdict | None = None
    seconds: float = 0.0
    attempts: int = 0
    message: str = ""
    evidence: str = Field("", description="folder inside the report folder")


class DriverConformanceReport(Published):
    """The whole report."""

    api_version: Literal["dra-testbed/v1alpha1"] = API_VERSION
    kind: Literal["DriverConformanceReport"] = "DriverConformanceReport"
    generated: Generated
    subject: DriverUnderTest
    environment: Environment
    profile: str = Field("full", description="the named set of requirements that was judged by")
    request: ReportedRequest = Field(
        ReportedRequest(), description="the options that decide what is judged and how strictly"
    )
    result: Result
    reasons: tuple[str, ...] = Field((), description="why the result is not better")
    finished: bool = Field(description="whether the run came to its end")
    seconds: float
    patience: float
    statistics: dict[str, int] = Field(description="how many requirements have which verdict")
    requirements: tuple[RequirementReport, ...]

"""The conformance report (kind DriverConformanceReport): what was judged, where and how, and the result.

`reporting` creates it from the events of a run.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from testbed.models.requirement_enums import Level, Result, Subject, Tier, Verdict
from testbed.models.run_request import ReportedRequest
from testbed.models.strict import API_VERSION, Published


class Generated(Published):
    """The start of the run, and the versions that it used."""

    at: str = Field(description="Start of the run, in UTC.")
    suite: str = Field(description="Version of dra-testbed.")
    digest: str = Field("", description="Digest of the code, the suites and the manifests of dra-testbed.")
    catalogue: str = Field(description="Digest of all requirements of this version.")
    python: str
    pytest: str


class DriverUnderTest(Published):
    """The driver under test, or one of its companions."""

    driver: str
    driver_file: str = Field(description="Name in the metadata of the driver file.")
    digest: str = Field(description="Digest of the driver file.")
    version: str = Field(
        "",
        description="Version in the driver file; otherwise the image of the driver's pods with its ID, if there is only one.",
    )
    images: dict[str, str] = Field(
        default={},
        description="Images of the driver's pods when the run started, with the IDs that the nodes report.",
    )


class Environment(Published):
    """The cluster of the run."""

    testbed: str
    provider: str
    kubernetes: str
    nodes: int
    runtime: str
    feature_gates: dict[str, bool] = Field(default={})
    gates_assumed: tuple[str, ...] = Field(
        (), description="Feature gates that could not be read; the defaults of this Kubernetes version were assumed."
    )
    hardware: Literal["synthetic", "unknown"] = Field(
        "unknown", description="synthetic for the fake drivers, which have no real devices; unknown for all others."
    )
    read_only: bool = Field(
        False, description="Whether the run could create nothing on the cluster: --allow read-only."
    )


class KnownFailure(Published):
    """A failure that the driver file lists under `known`."""

    reason: str
    link: str = ""
    until: str = Field("", description="Last day on which it counts as known. Empty: no limit.")


class RequirementReport(Published):
    """One requirement. Without a verdict, the run ended before it was judged."""

    id: str
    sentence: str
    level: Level
    tier: Tier
    about: Subject = Field(Subject.DRIVER, description="What it judges: the driver or the cluster.")
    source: str
    tests: tuple[str, ...] = ()
    verdict: Verdict | None = None
    seconds: float = 0.0
    attempts: int = 0
    message: str = ""
    exempt: bool = Field(False, description="Whether it is not applicable because of an exemption in the driver file.")
    known: KnownFailure | None = Field(None, description="What the driver file says about its failure under `known`.")
    evidence: str = Field("", description="Folder with evidence, relative to the report folder.")


class LevelCount(Published):
    """How many of the applicable requirements of one level passed."""

    passed: int = 0
    applicable: int = 0


class Judged(Published):
    """How much was judged."""

    must: LevelCount = LevelCount()
    should: LevelCount = LevelCount()
    may: LevelCount = LevelCount()
    exempt: int = Field(
        0, description="Requirements that are not applicable because of an exemption in the driver file."
    )


class ClusterReport(Published):
    """The result of the requirements about the cluster. It never decides a driver's result."""

    result: Result
    judged: Judged
    reasons: tuple[str, ...] = Field((), description="Reasons for the result, if it is not conformant.")


class DriverConformanceReport(Published):
    """The conformance report of a driver."""

    api_version: Literal["dra-testbed/v1alpha1"] = API_VERSION
    kind: Literal["DriverConformanceReport"] = "DriverConformanceReport"
    generated: Generated
    subject: DriverUnderTest
    companions: tuple[DriverUnderTest, ...] = Field(
        (), description="Drivers that were installed with it and not judged."
    )
    environment: Environment
    profile: str = Field("full", description="Profile: the named set of requirements that were judged.")
    request: ReportedRequest = Field(
        ReportedRequest(), description="Options that decide what is judged and how strictly."
    )
    result: Result = Field(description="Result of the driver; in the profile cluster, that of the cluster.")
    judged: Judged = Field(Judged(), description="Requirements that the result is about.")
    reasons: tuple[str, ...] = Field((), description="Reasons for the result, if it is not conformant.")
    cluster: ClusterReport | None = Field(
        None, description="Result of the cluster; absent if no requirement was about it."
    )
    finished: bool = Field(description="Whether the run was completed.")
    seconds: float
    patience: float
    statistics: dict[str, int] = Field(description="Number of requirements by verdict.")
    requirements: tuple[RequirementReport, ...]

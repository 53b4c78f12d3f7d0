"""The fixed words of requirements and reports. Plain enumerations, so that suites can import them without anything else."""

from __future__ import annotations

import enum


class Level(enum.StrEnum):
    """How much a requirement binds, in the words of RFC 2119."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Tier(enum.StrEnum):
    """What a test needs around it, from nothing but files to a cluster that it may break."""

    STATIC = "static"
    WIRE = "wire"
    E2E = "e2e"
    DISRUPTIVE = "disruptive"


class Subject(enum.StrEnum):
    """Who breaks a requirement that is not met: the driver, or Kubernetes around it, which is never the driver's fault."""

    DRIVER = "driver"
    CLUSTER = "cluster"


class Verdict(enum.StrEnum):
    """What is said about one requirement. Only the last two cost nothing."""

    PASS = "pass"  # noqa: S105 - nobody's password
    FAIL = "fail"
    ERROR = "error"
    TIMEOUT = "timeout"
    BLOCKED = "blocked"
    FLAKY = "flaky"
    EXCLUDED = "excluded"
    NOT_APPLICABLE = "not-applicable"
    CLUSTER_UNSUPPORTED = "cluster-unsupported"


class Result(enum.StrEnum):
    """What is said about a whole run."""

    CONFORMANT = "conformant"
    PARTIAL = "partial"
    NON_CONFORMANT = "non-conformant"
    INCOMPLETE = "incomplete"

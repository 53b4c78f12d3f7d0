"""The enumerations of requirements and reports, which suites, `conformance` and `reporting` use."""

from __future__ import annotations

import enum


class Level(enum.StrEnum):
    """How binding a requirement is, as in RFC 2119."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Tier(enum.StrEnum):
    """What a test needs, from nothing but files to a cluster that it may disrupt."""

    STATIC = "static"
    WIRE = "wire"
    E2E = "e2e"
    DISRUPTIVE = "disruptive"


class Subject(enum.StrEnum):
    """What a requirement is about: the driver or the cluster. They are judged apart: neither fails the other."""

    DRIVER = "driver"
    CLUSTER = "cluster"


class Verdict(enum.StrEnum):
    """The verdict of one requirement. `not-applicable` is the only one besides `pass` that a conformant driver may have for a MUST."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    ERROR = "error"
    TIMEOUT = "timeout"
    BLOCKED = "blocked"
    FLAKY = "flaky"
    EXCLUDED = "excluded"
    NOT_APPLICABLE = "not-applicable"
    CLUSTER_UNSUPPORTED = "cluster-unsupported"


class Result(enum.StrEnum):
    """The result of a run, for the driver or for the cluster: the first one that holds."""

    FAILED = "failed"
    INCOMPLETE = "incomplete"
    PUBLISHED = "published"
    PARTIAL = "partial"
    CONFORMANT = "conformant"

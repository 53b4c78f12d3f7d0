"""Requirements: catalogue, profiles, selection, verdicts, and the events of a run.

The suites import only the names below from the testbed. They get everything else as fixtures.
"""

from testbed.conformance.requirement import (
    CLUSTER,
    DISRUPTIVE,
    DRIVER,
    E2E,
    MAY,
    MUST,
    SHOULD,
    STATIC,
    WIRE,
    Requirement,
    requirement,
)
from testbed.kube import messages
from testbed.models.requirement_enums import Level, Subject, Tier
from testbed.providers.base import Capability
from testbed.vocabulary.checked_sets import NONE

__all__ = [
    "CLUSTER",
    "DISRUPTIVE",
    "DRIVER",
    "E2E",
    "MAY",
    "MUST",
    "NONE",
    "SHOULD",
    "STATIC",
    "WIRE",
    "Capability",
    "Level",
    "Requirement",
    "Subject",
    "Tier",
    "messages",
    "requirement",
]

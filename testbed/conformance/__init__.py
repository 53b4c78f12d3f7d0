"""Requirements and what is known of them: catalogue, selection, verdicts, reports. Pure functions over plain data.

The suites import nothing of the testbed but the names below; everything else comes to them as fixtures.
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

__all__ = [
    "CLUSTER",
    "DISRUPTIVE",
    "DRIVER",
    "E2E",
    "MAY",
    "MUST",
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

"""Feature gates: reported by the server, visible in the API, or assumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from testbed import folders
from testbed.conformance import catalogue
from testbed.conformance.facts import default_gates
from testbed.conformance.gates import Gates, find_gates
from testbed.kube import features

KUBE: Any = None


def _found(
    monkeypatch: pytest.MonkeyPatch, version: str, said: Mapping[str, bool] | None, shown: Mapping[str, bool]
) -> Gates:
    monkeypatch.setattr(features, "gates", lambda _: said)
    monkeypatch.setattr(features, "visible_gates", lambda *_, **__: shown)
    return find_gates(KUBE, version, default_gates(version), may_create=True)


def test_nothing_is_assumed_if_metrics_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"DRADeviceTaints": False, "Other": True, "Another": False}
    found = _found(monkeypatch, "v1.37.0", said, {"Another": True})
    assert found == Gates(default_gates("v1.37.0") - {"DRADeviceTaints"} | {"Other"})


def test_what_the_api_shows_overrides_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _found(monkeypatch, "v1.37.0", None, {"DRADeviceTaints": False, "DRAPartitionableDevices": True})
    assert "DRADeviceTaints" not in found.on
    assert "DRAPartitionableDevices" in found.on
    assert found.assumed == {
        "DRAConsumableCapacity", "DRADeviceBindingConditions", "DRADeviceTaintRules", "ResourceHealthStatus",
        "ResourceHealthStatusMessage",
    }  # fmt: skip


def test_a_gate_that_a_version_lacks_is_not_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _found(monkeypatch, "v1.34.0", None, {"DRAExtendedResource": True})
    assert "DRAExtendedResource" in found.on
    assert "DRAConsumableCapacity" not in found.on
    assert "DRAConsumableCapacity" in found.assumed
    assert "DRADeviceTaintRules" not in found.assumed


def test_all_gates_of_an_unknown_version_are_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _found(monkeypatch, "v1.99.0", None, {}) == Gates(default_gates("v1.99.0"), features.REQUIREMENT_GATES)


def test_each_gate_of_a_requirement_is_tried_or_reported_as_assumed() -> None:
    """If this fails, a requirement names a new gate: add it to REQUIREMENT_GATES, and a dry run to features.py if a field shows it."""
    known = catalogue.read([folders.data("suites")]).every
    assert {gate for each in known for gate in each.requirement.gates} <= features.REQUIREMENT_GATES

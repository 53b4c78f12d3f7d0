"""Keys that moved, and keys that this version cannot act on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.models.driver.files import refusal


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "  devices:",
            "  deviceClass: a.example\n  devices:",
            "14: spec.deviceClass: is not a known key; it moved to spec.devices.classes",
        ),
        (
            "  devices:",
            "  classes: {taints: t.example}\n  devices:",
            "spec.classes: is not a known key; it moved to spec.optional, as",
        ),
        (
            "  devices:",
            "  sharing: {capacity: a}\n  devices:",
            "spec.sharing: is not a known key; it moved to spec.optional.capacity",
        ),
        (
            "  devices:",
            "  otherDevices: {a: [b]}\n  devices:",
            "spec.otherDevices: is not a known key; it moved to spec.devices.others",
        ),
        (
            "  devices:",
            "  examples: {}\n  devices:",
            "spec.examples: is not a known key; it moved to spec.devices.examples",
        ),
        ("  devices:\n", "  devices:\n    examples: {matchAttribute: a}\n", "it moved to spec.devices.examples.match"),
        ("    lines:", "    matches:", "spec.probe.matches: is not a known key; it moved to spec.probe.lines"),
        ("    lines:", "    identityAttribute: uuid\n    lines:", "it moved to spec.devices.identity.attribute"),
        (
            '"true"}}',
            '"true"}, ownSlices: false}',
            "spec.nodes.ownSlices: is not a known key; it moved to spec.devices.belongTo",
        ),
    ],
)
def test_a_key_that_moved_is_reported_with_its_line_and_its_new_place(
    folder: Path, old: str, new: str, message: str
) -> None:
    found = refusal(folder, old, new)
    assert message in found
    assert re.search(r"driver\.yaml:\d+: spec\.", found)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  devices:", "  budgets: {prepareP99: 2s}\n  devices:", "spec.budgets: is not supported"),
    ],
)
def test_a_key_that_this_version_cannot_act_on_is_refused(folder: Path, old: str, new: str, message: str) -> None:
    found = refusal(folder, old, new)
    assert message in found
    assert re.search(r"driver\.yaml:\d+: spec\.", found)

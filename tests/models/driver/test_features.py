"""Features of a driver: declared, derived from other keys, and exempted."""

from __future__ import annotations

import re
import typing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from testbed.errors import UsageError
from testbed.models.driver_file import DriverSpec
from testbed.models.features import DERIVED, EXEMPTIBLE, declaring_key
from tests.models.driver.files import FULL, load


def test_features_are_declared_or_derived_from_other_keys(folder: Path) -> None:
    assert load(folder, FULL).features == {"identity", *EXEMPTIBLE}
    section = "  features: [device-status]\n"
    examples = "    examples: {match: resource.kubernetes.io/pcieRoot, capacity: memory}\n"
    file = load(folder, FULL.replace("  probe:", examples + "  probe:") + section)
    assert file.features - EXEMPTIBLE.keys() == {
        "identity",
        "device-status",
        "example-match-attribute",
        "example-capacity",
    }
    assert (file.examples.attribute, file.examples.capacity) == ("", "memory")


@pytest.mark.parametrize("name", DERIVED)
def test_a_feature_that_another_key_declares_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(
        UsageError, match=rf"spec\.features\[0\]: is {name}, which {re.escape(declaring_key(name))} declares"
    ):
        load(folder, f"{FULL}  features: [{name}]\n")


@pytest.mark.parametrize(
    ("word", "hint"),
    [("device-statuss", "did you mean device-status?"), ("gpu", "known: device-status, health, metadata")],
)
def test_an_unknown_feature_is_refused(folder: Path, word: str, hint: str) -> None:
    message = rf"spec\.features\[0\]: is '{word}', which is not a feature; {re.escape(hint)}"
    with pytest.raises(UsageError, match=message):
        load(folder, f"{FULL}  features: [{word}]\n")


def test_a_driver_has_the_features_that_it_is_not_exempt_from(folder: Path) -> None:
    exempt = ["shared-claims", "per-container"]
    file = load(folder, f"{FULL}  exempt: [{', '.join(exempt)}]\n")
    assert file.features == {"identity", *(EXEMPTIBLE.keys() - exempt), "exempt:shared-claims", "exempt:per-container"}


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("shared-claim", "did you mean shared-claims or "),
        ("health", "known: admin-access, cdi, one-request, per-container, "),
    ],
)
def test_an_unknown_exemption_is_refused(folder: Path, word: str, hint: str) -> None:
    message = rf"spec\.exempt\[0\]: is '{word}', which is not a possible exemption; {re.escape(hint)}"
    with pytest.raises(UsageError, match=message):
        load(folder, f"{FULL}  exempt: [{word}]\n")


@pytest.mark.parametrize("name", EXEMPTIBLE)
def test_a_feature_that_every_driver_has_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match=rf"spec\.features\[0\]: is {name}, which every driver has"):
        load(folder, f"{FULL}  features: [{name}]\n")


def test_every_key_that_declares_a_feature_exists() -> None:
    for path in DERIVED.values():
        model: Any = DriverSpec
        for key in path.split("."):
            field = next(each for name, each in model.model_fields.items() if (each.alias or name) == key)
            model = next(
                (part for part in (field.annotation, *typing.get_args(field.annotation)) if _is_model(part)), None
            )


def _is_model(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def test_a_class_declares_its_feature(folder: Path) -> None:
    section = (
        "  optional:\n    taints: {class: t.example.com}\n"
        "    capacity: {class: c.example.com, name: memory, half: 8Gi, tooMuch: 10Gi}\n"
    )
    file = load(folder, FULL.replace("  probe:", "    others: {type: [mig]}\n  probe:") + section)
    assert file.features - EXEMPTIBLE.keys() == {"identity", "taints", "capacity", "sharing-limits"}
    assert (file.classes.taints, file.classes.binding) == ("t.example.com", None)
    assert file.other_devices == {"type": ("mig",)}

"""The configuration section of a driver file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.errors import UsageError
from tests.models.driver.files import FULL, load

CONFIGURED = (
    FULL
    + """
  configuration:
    command: [env]
    one: {parameters: {speed: 1}, shows: '^SPEED=1$'}
    other: {parameters: {speed: 2}, shows: '^SPEED=2$'}
    invalid: {parameters: {speed: much}, field: speed}
"""
)


def test_a_configuration_section_declares_the_feature(folder: Path) -> None:
    found = load(folder, CONFIGURED)

    assert "configuration" in found.features
    assert "configuration" not in load(folder, FULL).features
    assert found.configuration
    assert found.configuration.shown("PATH=/bin\nSPEED=2\n") == ("other",)
    assert found.configuration.shown("SPEED=11\n") == ()
    assert found.configuration.invalid
    assert found.configuration.invalid.parameters == {"speed": "much"}


def test_an_invalid_regular_expression_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="is not a valid regular expression"):
        load(folder, CONFIGURED.replace("^SPEED=2$", "^SPEED=(2$"))


def test_a_configuration_that_no_container_shows_is_judged_by_its_refusal(folder: Path) -> None:
    found = load(folder, FULL + "  configuration: {invalid: {parameters: {speed: much}, field: speed}}\n")
    assert "invalid-configuration" in found.features
    assert "configuration" not in found.features


def test_one_configuration_is_enough(folder: Path) -> None:
    found = load(folder, FULL + "  configuration: {command: [env], one: {parameters: {speed: 1}, shows: 'SPEED=1'}}\n")
    assert "configuration" in found.features
    assert not {"two-configurations", "invalid-configuration"} & found.features
    assert "two-configurations" in load(folder, CONFIGURED).features


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{command: [env]}", "has only one of command and one"),
        ("{one: {parameters: {}, shows: a}}", "has only one of command and one"),
        ("{command: [env], other: {parameters: {}, shows: a}}", "has other, which requires one"),
        ("{}", "has neither one nor invalid"),
        ("{precedence: claim, invalid: {parameters: {}, field: a}}", "has a precedence, which requires command, one"),
    ],
)
def test_a_configuration_that_cannot_be_judged_is_refused(folder: Path, given: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        load(folder, FULL + f"  configuration: {given}\n")


@pytest.mark.parametrize(("declared", "is_judged"), [("claim", True), ("class", True), ("none", False)])
def test_only_a_declared_precedence_of_configuration_is_judged(folder: Path, declared: str, is_judged: bool) -> None:
    found = load(folder, CONFIGURED + f"    precedence: {declared}\n")
    assert "configuration" in found.features
    assert ("configuration-precedence" in found.features) is is_judged
    assert "configuration-precedence" not in load(folder, CONFIGURED).features


def test_an_unknown_precedence_is_an_error(folder: Path) -> None:
    with pytest.raises(UsageError, match="precedence"):
        load(folder, CONFIGURED + "    precedence: node\n")

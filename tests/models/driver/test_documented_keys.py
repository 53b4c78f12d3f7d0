"""The parts of driver files that the documentation shows have only keys of this version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from testbed.models.driver_file import DriverFile, DriverSpec

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([a-zA-Z]+: \{[^`]*\})`")
_KEYS = {info.alias for info in DriverSpec.model_fields.values()}


def shown_specs(text: str) -> Iterator[dict[str, Any]]:
    """Yield what a page writes under `spec` of a driver file."""
    for block in _BLOCK.findall(text):
        for content in yaml.safe_load_all(block):
            if isinstance(content, dict) and content.get("kind", "DriverFile") == "DriverFile" and "spec" in content:
                yield content["spec"]
    for part in map(yaml.safe_load, _INLINE.findall(text)):
        if _KEYS & set(part):
            yield part


def unknown_keys(spec: dict[str, Any]) -> list[str]:
    """Return the keys that no driver file has."""
    try:
        DriverFile.model_validate({"spec": spec})
    except ValidationError as refused:
        wrong = [each["loc"] for each in refused.errors() if each["type"] == "extra_forbidden"]
        return [".".join(map(str, location)) for location in wrong]
    return []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_no_unknown_key(page: Path) -> None:
    assert [key for spec in shown_specs(page.read_text()) for key in unknown_keys(spec)] == []


def test_most_sections_are_shown() -> None:
    shown = {key for page in PAGES for spec in shown_specs(page.read_text()) for key in spec}
    assert shown > {"devices", "nodes", "optional", "probe", "exempt"}


@pytest.mark.parametrize("text", ["`nodes: {ownSlices: false}`", "```yaml\nspec:\n  nodes: {ownSlices: false}\n```\n"])
def test_a_key_that_moved_is_found(text: str) -> None:
    assert [unknown_keys(spec) for spec in shown_specs(text)] == [["spec.nodes.ownSlices"]]

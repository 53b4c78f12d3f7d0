"""docs/driver-file.md has every key of the models, each with a meaning and an example that is valid."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from testbed import folders
from testbed.errors import TestbedError
from testbed.models.driver_file import DriverSpec
from testbed.reporting import driver_file_page as page
from testbed.reporting.driver_file_page import BEGIN, END

SMALLEST = {
    "driver": "gpu.acme.example",
    "pods": {"namespace": "acme", "selector": "app=acme", "container": "plugin"},
    "devices": {"classes": ["gpu.acme.example"], "identity": {"attribute": "uuid"}},
    "probe": {"command": ["acme-smi"]},
    "configuration": {
        "command": ["env"],
        "one": {"parameters": {}, "shows": "one"},
        "other": {"parameters": {}, "shows": "other"},
    },
}


def test_every_key_has_an_example_and_every_example_a_key() -> None:
    assert sorted(page.examples()) == sorted(page.keys())


def test_every_key_has_a_meaning() -> None:
    assert page.undescribed() == []


@pytest.mark.parametrize("key", page.keys())
def test_examples_are_valid_and_contain_their_key(key: str) -> None:
    example = yaml.load(page.examples()[key], Loader=yaml.BaseLoader)
    given = {**SMALLEST, **_typed(page.examples()[key])}
    if key.startswith("spec.install.process"):  # its pods are made by dra-testbed
        del given["pods"]
    DriverSpec.model_validate_json(json.dumps(given, default=str))
    for part in key.split(".")[1:]:
        inner = example[0] if isinstance(example, list) else example
        assert part in inner, f"the example of {key} does not contain it: {example}"
        example = inner[part]


def _typed(text: str) -> dict[str, Any]:
    return dict(yaml.safe_load(text))


def test_only_the_part_between_the_marks_is_written() -> None:
    written = page.page(f"by hand\n{BEGIN}\nis outdated\n{END}\nafter\n")
    assert written.startswith("by hand\n")
    assert written.endswith(f"{END}\nafter\n")
    assert "is outdated" not in written
    assert "| `perNode` | number; default `1` |" in written
    assert page.page(written) == written


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(TestbedError, match="lacks a mark"):
        page.page("by hand")


def test_the_page_in_docs_is_up_to_date() -> None:
    text = (folders.data("suites").parent / "docs" / "driver-file.md").read_text()
    assert page.page(text) == text, "run: python -m testbed.reporting --write"


def test_repeated_sections_refer_to_the_first_one() -> None:
    same = {each.path: each.same_as for each in page.sections() if each.same_as}
    assert same["spec.probe.without"] == "spec.probe"
    assert same["spec.configuration.other"] == "spec.configuration.one"

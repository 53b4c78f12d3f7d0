from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed import process
from testbed.conformance import CLUSTER, DRIVER, E2E, MUST, requirement
from testbed.conformance.requirement import requirement_of
from testbed.errors import UsageError


def _made(**facts: Any) -> Callable[[Callable[[], str]], Callable[[], str]]:
    words: dict[str, Any] = {
        "id": "T-001",
        "sentence": "It works.",
        "level": MUST,
        "tier": E2E,
        "source": "here",
        **facts,
    }
    return requirement(**words)


def test_the_decorator_returns_the_function_with_its_requirement() -> None:
    @_made(devices=2)
    def test_it() -> str:
        return "still called"

    found = requirement_of(test_it)
    assert test_it() == "still called"
    assert found is not None
    assert (found.id, found.devices, found.kubernetes) == ("T-001", 2, "1.34")


def test_other_functions_have_no_requirement() -> None:
    assert requirement_of(test_other_functions_have_no_requirement) is None


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"id": "T-1"}, "PREFIX-001"),
        ({"id": "t-001"}, "PREFIX-001"),
        ({"id": "../../T-001"}, "PREFIX-001"),
        ({"sentence": "works"}, "full stop"),
        ({"kubernetes": "1.36.2"}, "1.36"),
        ({"given": ("locals",)}, "did you mean local"),
    ],
)
def test_an_invalid_requirement_is_refused(facts: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        _made(**facts)


def test_a_requirement_is_about_the_driver_by_default() -> None:
    found = requirement_of(_made()(lambda: ""))
    other = requirement_of(_made(about=CLUSTER, exclusive=True)(lambda: ""))
    assert found
    assert other
    assert (found.about, found.exclusive) == (DRIVER, False)
    assert (other.about, other.exclusive) == (CLUSTER, True)


def test_suites_import_no_heavy_modules() -> None:
    code = "import sys, testbed.conformance; print(sorted({'kubernetes', 'grpc', 'rich', 'cryptography', 'jinja2'} & set(sys.modules)))"
    assert process.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).stdout.strip() == "[]"

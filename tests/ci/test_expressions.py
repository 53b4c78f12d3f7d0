from __future__ import annotations

from typing import Any

import pytest

from ci.expressions import Unknown, evaluate, fill, holds

CONTEXT: dict[str, Any] = {
    "inputs": {"driver": "a.yaml", "nodes": ""},
    "steps": {"judge": {"outputs": {"exit-code": "1"}}},
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("inputs.driver", "a.yaml"),
        ("steps.judge.outputs.exit-code", "1"),
        ("steps.nobody.outputs.x", ""),
        ("'it''s'", "it's"),
        ("inputs.nodes || 'two'", "two"),
        ("inputs.driver && inputs.nodes", ""),
        ("'A' == 'a'", True),
        ("'a' != 'a'", False),
        ("!inputs.nodes && inputs.driver == 'a.yaml'", True),
        ("true && (false || 'x')", "x"),
        ("'' || 'a' == 'b' || 'c'", "c"),
        ("hashFiles('ci/**', 'x')", ""),
    ],
)
def test_an_expression_has_the_value_that_github_gives_it(expression: str, value: object) -> None:
    assert evaluate(expression, CONTEXT) == value


@pytest.mark.parametrize(
    "expression", ["", "a b", "'a' ==", "fromJSON(inputs.driver)", "(a", "a + b", "&& a", "always("]
)
def test_what_we_do_not_use_is_refused(expression: str) -> None:
    with pytest.raises(Unknown):
        evaluate(expression, CONTEXT)


def test_text_is_filled_in_where_the_braces_are() -> None:
    assert fill("${{ inputs.driver }}-${{ true }}-${{ inputs.nodes }}.", CONTEXT) == "a.yaml-true-."


@pytest.mark.parametrize(
    ("condition", "after_success", "after_failure"),
    [
        ("success()", True, False),
        ("failure()", False, True),
        ("always()", True, True),
        ("${{ always() && inputs.nodes != '' }}", False, False),
        ("inputs.driver != ''", True, False),
        ("!cancelled()", True, True),
    ],
)
def test_a_step_is_run_when_its_condition_holds(condition: str, after_success: bool, after_failure: bool) -> None:
    assert (holds(condition, CONTEXT, failed=False), holds(condition, CONTEXT, failed=True)) == (
        after_success,
        after_failure,
    )

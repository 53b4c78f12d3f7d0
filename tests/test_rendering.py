"""Templates: undefined and unused variables are errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.rendering import render, render_file


def test_variables_are_substituted() -> None:
    assert render("a: {{ a }}\n{% if b %}\nb: {{ b }}\n{% endif %}\n", {"a": 1, "b": "x"}) == "a: 1\nb: x\n"


def test_the_error_for_an_undefined_variable_lists_the_available_ones() -> None:
    with pytest.raises(UsageError, match=r"pod.yaml: 'b' is undefined\n  try: available variables: a, c"):
        render("{{ b }}{{ a }}{{ c }}", {"a": 1, "c": 2}, name="pod.yaml")


def test_a_variable_that_is_not_used_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"pod.yaml does not use: b, c"):
        render("{{ a }}", {"a": 1, "c": 2, "b": 3}, name="pod.yaml")


def test_with_allow_unused_a_variable_need_not_be_used() -> None:
    assert render("{{ a }}", {"a": 1, "b": 2}, allow_unused=True) == "1"


def test_a_broken_template_is_an_error_with_its_line() -> None:
    with pytest.raises(UsageError, match=r"pod\.yaml, line 2"):
        render("fine\n{% if %}", {}, name="pod.yaml")


def test_text_is_not_escaped() -> None:
    assert render("{{ a }}", {"a": "<&>"}) == "<&>"


def test_errors_of_files_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("{{ missing }}")

    with pytest.raises(UsageError, match=str(file)):
        render_file(file, {})


def test_a_template_imports_another_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "facts.jinja").write_text("{% set size = (hardware | from_yaml).size %}")
    (tmp_path / "a.yaml").write_text('{% from "facts.jinja" import size with context %}\nsize: {{ size }}\n')
    assert render_file(tmp_path / "a.yaml", {"hardware": "size: 3"}, allow_unused=True).strip() == "size: 3"


def test_an_import_that_does_not_exist_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text('{% from "facts.jinja" import size %}')
    with pytest.raises(UsageError, match=r"a\.yaml imports facts\.jinja, which is not in the same folder"):
        render_file(tmp_path / "a.yaml", {})


def test_a_variable_that_is_not_yaml_is_the_users_error() -> None:
    with pytest.raises(UsageError, match="a variable has a value that it can't use"):
        render("{{ (hardware | from_yaml).size }}", {"hardware": "a: ["})

"""Reading YAML, stricter than YAML, with line numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.models import document
from testbed.models.document import format_location, parse

HERE = Path("file.yaml")


def problems(text: str) -> list[tuple[int, str, str]]:
    return [(problem.line, problem.path, problem.what) for problem in parse(text, HERE).problems]


def test_content_lines_and_spelling_of_scalars_are_kept() -> None:
    found = parse("a:\n  b: 1.30\n  c:\n  - x\n  - yes\n", HERE)

    assert found.content == {"a": {"b": 1.3, "c": ["x", True]}}
    assert found.written["a", "b"] == "1.30"
    assert (found.line(("a", "b")), found.line(("a", "c")), found.line(("a", "c", 1))) == (2, 3, 5)


def test_a_missing_location_has_the_line_of_its_parent() -> None:
    assert parse("a:\n  b: 1\n", HERE).line(("a", "missing", 3)) == 1


def test_dates_stay_strings() -> None:
    assert parse("a: 2024-01-31", HERE).content == {"a": "2024-01-31"}


@pytest.mark.parametrize(
    ("text", "line", "path", "what"),
    [
        ("a: 1\nb: 2\na: 3", 3, "a", "is a duplicate key, first used in line 1"),
        ("a:\n- {b: 1, b: 2}", 2, "a[0].b", "is a duplicate key, first used in line 2"),
        ("a:\n  1: x", 2, "a.1", "is not a string key; write '1' in quotes"),
        ("a:\n  on: x", 2, "a.on", "is not a string key; write 'on' in quotes"),
        ("a: &x [1]\nb: *x", 2, "b", "is an alias; write the value out"),
        ("a:\nb: 1", 1, "a", "is empty; give it a value, or remove the key"),
        ("a: !env HOME", 1, "a", "has the tag !env; tags are not supported"),
        ("a: !!python/object:os.system x", 1, "a", "has the tag tag:yaml.org,2002:python/object:os.system"),
    ],
)
def test_risky_yaml_is_a_problem(text: str, line: int, path: str, what: str) -> None:
    ((found_line, found_path, found_what),) = problems(text)

    assert (found_line, found_path) == (line, path)
    assert found_what.startswith(what)


def test_a_document_that_contains_itself_is_a_problem() -> None:
    assert problems("&a [*a]") == [(1, "[0]", "is an alias; write the value out")]


def test_aliases_are_not_expanded() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)
    )

    assert len(problems(bomb)) == 63


def test_a_number_that_python_cannot_parse_is_a_problem() -> None:
    ((_, path, what),) = problems("a: " + "9" * 5000)

    assert path == "a"
    assert what.startswith("is not a valid value")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", r"file\.yaml:1: not valid YAML"),
        ("a: 1\n\tb: 2", r"file\.yaml:2: not valid YAML"),
        ("a: 1\n---\nb: 2", r"file\.yaml:2: not valid YAML: but found another document"),
        ("a: \x07", r"file\.yaml is not valid YAML"),
        ("[" * 1200, r"file\.yaml is not valid YAML: it is nested too deeply"),
        ("", r"file\.yaml is empty"),
        ("# only a comment\n", r"file\.yaml is empty"),
    ],
)
def test_a_text_without_one_document_is_an_error(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(text, HERE)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda path: None, "cannot read .*No such file"),
        (lambda path: path.mkdir(), "cannot read .*directory"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "is not UTF-8 text"),
        (lambda path: path.write_text("a: 1 #" + "x" * 1_000_001), "is it the right file"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(
    prepare: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    prepare(tmp_path / "file.yaml")

    with pytest.raises(UsageError, match=message):
        document.read(tmp_path / "file.yaml")


def test_locations_are_formatted_as_users_write_them() -> None:
    assert format_location(("spec", "install", "manifests", 0)) == "spec.install.manifests[0]"

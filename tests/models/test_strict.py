"""Strict models report all mistakes at once, each with file, line, key and a suggestion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, Field

from testbed.errors import UsageError
from testbed.models.document import parse
from testbed.models.strict import Strict, check, check_flags, existing_file


class Part(Strict):
    file: Annotated[Path, AfterValidator(existing_file)] | None = None
    long_name: str = "x"
    path: str = Field("/", pattern="^/")
    shout: str = Field("A", pattern="^[A-Z]+$")


class Whole(Strict):
    kind: Literal["Whole"] = "Whole"
    count: int = Field(1, ge=1, le=9)
    parts: tuple[Part, ...] = Field((), min_length=1)
    part: Part | None = None
    switches: dict[str, bool] = Field(default_factory=dict)
    word: Literal["first", "second"] = "first"


def problems(text: str) -> list[str]:
    """Return the lines of the error, without the file's name."""
    with pytest.raises(UsageError) as refused:
        check(parse(text, Path("file.yaml")), Whole)
    lines = [line.strip() for line in str(refused.value).splitlines()]
    return [line.removeprefix("file.yaml:") for line in lines if line.startswith("file.yaml:")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cuont: 3", "1: cuont: is not a known key; did you mean count?"),
        ("cuont:", "1: cuont: is not a known key; did you mean count?"),
        ("part:\n  longname: x", "2: part.longname: is not a known key; did you mean longName?"),
        ("part:\n  long_name: x", "2: part.long_name: is not a known key; did you mean longName?"),
        ("longName: x", "1: longName: is not a known key; did you mean part.longName?"),
        ("parts:\n- {}\n- fil: x", "3: parts[1].fil: is not a known key; did you mean file?"),
        ("count: 0", "1: count: is 0, but must be 1 or more"),
        ("part: {path: a}", "1: part.path: is 'a', but must be an absolute path"),
        ("part: {shout: a}", "1: part.shout: is 'a', but must match the pattern ^[A-Z]+$"),
        ("other: 1", "1: other: is not a known key; known: count, kind, part, parts, switches, word"),
        ("count: 10000", "1: count: is 10000, but must be 9 or less"),
        ("count: 1.5", "1: count: is the number 1.5, but must be an integer"),
        ("count: '3'", "1: count: is the string '3', but must be an integer"),
        ("count: true", "1: count: is true, but must be an integer"),
        ("count: [1]", "1: count: is a list, but must be an integer"),
        ("count:", "1: count: is empty; give it a value, or remove the key"),
        (
            "part: {longName: 1.30}",
            '1: part.longName: is the number 1.30, but must be a string: write it in quotes, "1.30"',
        ),
        ("part: {longName: no}", '1: part.longName: is false, but must be a string: write it in quotes, "no"'),
        ("part: {longName: {a: b}}", "1: part.longName: is a mapping, but must be a string"),
        ("part: 3", "1: part: is the number 3, but must be a mapping"),
        ("parts: {}", "1: parts: is a mapping, but must be a list"),
        ("parts: []", "1: parts: is [], but must not be empty"),
        ("switches:\n  A: on\n  B: maybe", "3: switches.B: is the string 'maybe', but must be true or false"),
        ("word: secnd", "1: word: is 'secnd', but must be 'first' or 'second'; did you mean second?"),
        ("- a", "1: document: is a list, but must be a mapping"),
        ("root:x:0:0:root\ngpu:x:1:1:gpu", "1: document: is text, but must be a mapping"),
        ("correct horse battery", "1: document: is text, but must be a mapping"),
    ],
)
def test_a_problem_has_line_key_and_suggestion(text: str, problem: str) -> None:
    assert problems(text) == [problem]


@pytest.mark.parametrize("text", ["part: {}", "word: {}", "count: {}", "parts: {}", "switches: {{A: {}}}"])
def test_a_long_wrong_value_is_cut(text: str) -> None:
    (found,) = problems(text.format("a" * 200 + "canary"))
    assert "aaa… (2" in found
    assert "canary" not in found


def test_all_problems_are_listed_in_the_order_of_the_file() -> None:
    found = problems("count: 0\nwrod: x\npart:\n  longName: 1\nword: x\nword: y\n")

    assert [line.split(": is")[0] for line in found] == ["1: count", "2: wrod", "4: part.longName", "6: word"]


def test_an_invalid_item_does_not_make_a_list_too_short() -> None:
    assert problems("parts: [3]") == ["1: parts[0]: is the number 3, but must be a mapping"]


def test_only_the_kind_of_a_file_of_another_kind_is_reported() -> None:
    assert problems("kind: Other\ncount: 0\nfoo: bar") == ["1: kind: is 'Other', but must be 'Whole'"]


def test_a_path_is_relative_to_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text("")

    made = check(parse("part: {file: ./there.yaml}", tmp_path / "file.yaml"), Whole)

    assert made.part is not None
    assert made.part.file == tmp_path / "there.yaml"


class Probe(Strict):
    probe: str
    kind: str = ""


def test_a_misspelt_key_is_not_missing_too() -> None:
    with pytest.raises(UsageError) as refused:
        check(parse("prbe: x", Path("file.yaml")), Probe)
    assert str(refused.value) == "file.yaml:1: prbe: is not a known key; did you mean probe?"
    with pytest.raises(UsageError, match=r"probe: is missing\n.*other: is not a known key"):
        check(parse("other: x", Path("file.yaml")), Probe)


def test_missing_files_are_one_problem_after_the_others(tmp_path: Path) -> None:
    text = "parts: [{file: a}, {file: b}, {file: c}]\ncuont: 1\n"
    with pytest.raises(UsageError) as refused:
        check(parse(text, tmp_path / "file.yaml"), Whole)
    _, own, missing = str(refused.value).splitlines()
    assert own == f"  {tmp_path}/file.yaml:2: cuont: is not a known key; did you mean count?"
    files = f"{tmp_path}/a, {tmp_path}/b and 1 more"
    assert missing == f"  {tmp_path}/file.yaml:1: 3 files do not exist: {files}; paths are relative to {tmp_path}"


def test_a_file_that_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"file.yaml:1: part.file: no such file: {tmp_path}/gone"):
        check(parse("part: {file: gone}", tmp_path / "file.yaml"), Whole)


def test_problems_of_flags_name_the_flag() -> None:
    with pytest.raises(UsageError) as refused:
        check_flags({"count": 0, "part": {"longName": 3}}, Whole)

    assert str(refused.value).splitlines() == [
        "--count: is 0, but must be 1 or more",
        "--part longName: is the number 3, but must be a string",
    ]


def test_models_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Whole(parts=(Part(),)).count = 3  # type: ignore[misc]  # this is what is tested

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.conformance.catalogue import read, suites_root
from testbed.errors import TestbedError, UsageError

_SUITE = """
from testbed.conformance import requirement, MUST, E2E

@requirement("{id}", "{sentence}", level=MUST, tier=E2E, source="here")
def test_{name}(scenario):
    scenario.apply("claims/two-cats.yaml", nodes=2)
    scenario.apply("other.yaml")
"""


def _write(folder: Path, name: str, identity: str, sentence: str = "It works.") -> Path:
    path = folder / f"test_{name}.py"
    path.write_text(_SUITE.format(id=identity, name=name, sentence=sentence))
    return path


def test_all_requirements_are_found_sorted_by_id(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    _write(tmp_path, "b", "T-002")
    _write(tmp_path / "deep", "a", "T-001")
    (tmp_path / "not_a_test.py").write_text("raise SystemExit")
    assert [(e.requirement.id, e.function) for e in read([tmp_path]).entries] == [
        ("T-001", "test_a"),
        ("T-002", "test_b"),
    ]


def test_an_entry_has_its_manifests_and_its_test(tmp_path: Path) -> None:
    path = _write(tmp_path, "a", "T-001")
    entry = read([path]).get("t-001")
    assert entry.manifests == ("claims/two-cats.yaml", "other.yaml")
    assert entry.source.startswith("@requirement(")
    assert read([path]).at(path.resolve(), "test_a") == entry


def test_manifests_in_parameters_are_found_once_and_in_order(tmp_path: Path) -> None:
    suite = _SUITE.format(id="T-001", sentence="It works.", name="a")
    cases = '@pytest.mark.parametrize("manifest", ["first.yaml", "other.yaml"])\n'
    (tmp_path / "test_a.py").write_text("import pytest\n" + suite.replace("@requirement", cases + "@requirement"))
    assert read([tmp_path]).get("T-001").manifests == ("first.yaml", "other.yaml", "claims/two-cats.yaml")


@pytest.mark.parametrize(
    "place",
    [
        lambda suite: suite.replace("def test_a", "async def test_a"),
        lambda suite: "if True:\n" + textwrap.indent(suite, "    "),
        lambda suite: f"# one \f page, \x85 another and \u2028 a third\n{suite}",
    ],
    ids=["async", "below-an-if", "after-a-form-feed"],
)
def test_an_entry_has_the_source_of_its_test(tmp_path: Path, place: Callable[[str], str]) -> None:
    path = _write(tmp_path, "a", "T-001")
    path.write_text(place(path.read_text()), encoding="utf-8")
    entry = read([path]).get("T-001")
    assert entry.manifests == ("claims/two-cats.yaml", "other.yaml")
    assert entry.source.startswith("@requirement(")


def test_an_entry_has_the_source_of_an_imported_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "written_elsewhere.py").write_text(_SUITE.format(id="T-001", sentence="It works.", name="a"))
    (tmp_path / "test_b.py").write_text("from written_elsewhere import test_a")
    assert read([tmp_path]).get("T-001").manifests == ("claims/two-cats.yaml", "other.yaml")


def test_an_entry_has_the_number_of_its_cases(tmp_path: Path) -> None:
    path = _write(tmp_path, "a", "T-001")
    marks = '@pytest.mark.parametrize("x", [1, 2])\n@pytest.mark.parametrize(argnames="y", argvalues=(3, 4, 5))\n'
    path.write_text("import pytest\n" + path.read_text().replace("def test_a", f"{marks}def test_a"))
    assert [entry.cases for entry in read([tmp_path]).entries] == [6]


def test_the_same_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = _write(tmp_path, "a", "T-001")
    assert len(read([path, tmp_path]).entries) == 1


def test_an_id_that_is_used_twice_is_refused_with_both_tests(tmp_path: Path) -> None:
    _write(tmp_path, "a", "T-001")
    _write(tmp_path, "b", "T-001")
    with pytest.raises(UsageError, match=r"test_a\.py::test_a and .*test_b\.py::test_b"):
        read([tmp_path])


def test_an_unknown_id_is_refused_with_similar_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean T-001"):
        read([_write(tmp_path, "a", "T-001")]).get("T-01")


def test_the_digest_changes_only_with_requirements(tmp_path: Path) -> None:
    one, two, three = (tmp_path / name for name in "abc")
    for folder in (one, two, three):
        folder.mkdir()
    first = read([_write(one, "a", "T-001")]).digest
    assert read([_write(two, "renamed", "T-001")]).digest == first
    assert read([_write(three, "a", "T-001", sentence="It works well.")]).digest != first


def test_a_suite_that_cannot_be_imported_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text("import nothing_like_this")
    with pytest.raises(TestbedError, match=r"test_broken\.py cannot be imported"):
        read([tmp_path])


_LIST = """
from testbed.conformance import MUST, WIRE, Requirement

PLANNED = (Requirement("{id}", "It will work.", MUST, WIRE, "here"),)
"""


def test_requirements_without_a_test_are_planned(tmp_path: Path) -> None:
    _write(tmp_path, "a", "T-002")
    (tmp_path / "requirements.py").write_text(_LIST.format(id="T-001"))
    known = read([tmp_path])

    assert [each.requirement.id for each in known.every] == ["T-001", "T-002"]
    assert [each.requirement.id for each in known.entries] == ["T-002"]
    assert known.get("T-001").test == ""
    assert known.get("T-002").test.endswith("test_a.py::test_a")


def test_an_id_of_a_planned_requirement_cannot_be_used_again(tmp_path: Path) -> None:
    _write(tmp_path, "a", "T-001")
    (tmp_path / "requirements.py").write_text(_LIST.format(id="T-001"))
    with pytest.raises(UsageError, match="T-001 is used twice"):
        read([tmp_path])


def test_a_single_file_has_no_planned_requirements(tmp_path: Path) -> None:
    (tmp_path / "requirements.py").write_text(_LIST.format(id="T-001"))
    assert read([_write(tmp_path, "a", "T-002")]).planned == ()


def test_the_root_of_the_suites_of_a_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "suites/claims").mkdir(parents=True)
    (tmp_path / "suites/upstream.yaml").touch()
    file = _write(tmp_path / "suites/claims", "a", "T-001")
    assert [suites_root(each) for each in (file, tmp_path / "suites")] == [tmp_path / "suites"] * 2
    assert suites_root(_write(tmp_path, "own", "T-002")) is None

"""What every requirement, test and manifest of the suites has to be."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

import pytest
import yaml

from ci.mutants import known
from testbed import folders
from testbed.conformance import catalogue
from testbed.kube import messages
from testbed.models import features
from testbed.models.requirement_enums import Level, Tier
from testbed.rendering import render_file, variables_of
from testbed.reporting import requirements_page

SUITES, MANIFESTS = folders.data("suites"), folders.data("manifests") / "suites"
TESTS, TEMPLATES = sorted(SUITES.rglob("test_*.py")), sorted(MANIFESTS.rglob("*.yaml"))
ENTRIES = catalogue.read([SUITES]).entries
ROOT = Path(__file__).parents[2]
_FOR_ALL = "basic"  # the manifests that several suites use
_EXAMPLE = "sigs.k8s.io/dra-example-driver"
_FORBIDDEN = (ast.For, ast.While, ast.Try, ast.With, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.If, ast.ClassDef)

# What cannot be otherwise when these words have waited; a pod that is held pending by a driver has named its node itself.
_WAITED_FOR = {
    "should_be_deallocated": {"devices", "pods", "is_protected"},
    "should_be_reserved_for": {"pods"},
    "should_stay_pending": {"phase", "node"},
    "should_be_unschedulable": {"phase", "node"},
    "should_stay_unscheduled": {"phase", "node"},
    "should_succeed": {"phase"},
    "should_run": {"phase"},
}
_LAST_IS_TAKEN = ("ADMIN-004", "SHARE-011")  # that the API server takes it is what they require


class _Anything(str):
    """A variable of a manifest, with whatever parts the manifest wants of it."""

    __slots__ = ()

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{self}-{name}"


def _documents(path: Path) -> list[Any]:
    given: dict[str, object] = {
        name: 2 if name in ("consumers", "count") else _Anything(name) for name in variables_of(path)
    }
    return list(yaml.safe_load_all(render_file(path, given)))


def _expressions(document: object) -> Iterator[str]:
    """Every CEL expression in it."""
    if isinstance(document, dict):
        yield from [document["cel"]["expression"]] if "cel" in document else ()
    for each in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from _expressions(each)


def _words(*statements: ast.stmt) -> list[Any]:
    """The calls of words that wait."""
    calls = [node for each in statements for node in ast.walk(each) if isinstance(node, ast.Call)]
    return [each for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr.startswith("should_")]


def _constants(line: ast.stmt) -> set[Any]:
    return {node.value for node in ast.walk(line) if isinstance(node, ast.Constant)}


def _is_of_pytest(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pytest"


@pytest.mark.parametrize("path", TESTS, ids=str)
def test_a_suite_imports_only_its_words_and_reads_from_top_to_bottom(path: Path) -> None:
    tree = ast.parse(path.read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {"testbed.conformance"}
    plain = [each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names]
    assert plain in ([], ["pytest"])
    assert {node.attr for node in ast.walk(tree) if _is_of_pytest(node)} <= {"mark"}  # to parametrize
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, _FORBIDDEN)]
    functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert all(name.startswith("test_") for name in functions)
    assert ast.get_docstring(tree)


def test_a_text_of_kubernetes_stands_only_in_its_module() -> None:
    texts = {each: name for name, each in vars(messages).items() if name.isupper()}
    assert len(texts) == sum(name.isupper() for name in vars(messages))
    for path in (*TESTS, *ROOT.glob("testbed/vocabulary/**/*.py"), *ROOT.glob("testbed/drivers/**/*.py")):
        literals = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        assert not literals & texts.keys(), f"{path}: use testbed.kube.messages"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_requirement_has_a_manifest_beside_its_suite_or_one_of_those_for_all(entry: catalogue.Entry) -> None:
    assert bool(entry.manifests) is (entry.requirement.tier is not Tier.STATIC)  # which makes nothing
    for name in entry.manifests:
        assert (MANIFESTS / name).is_file()
        assert name.split("/")[0] in (entry.path.parent.name, _FOR_ALL)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_requirement_is_asserted_in_up_to_three_lines_or_waited_for(entry: catalogue.Entry) -> None:
    (function,) = ast.parse(entry.source).body
    assert isinstance(function, ast.FunctionDef)
    assert sum(isinstance(node, ast.Assert) for node in function.body) <= 3
    last = ast.unparse(function.body[-1])
    assert last.startswith("assert ") or "should_" in last or entry.requirement.id in _LAST_IS_TAKEN


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_no_assertion_repeats_what_was_just_waited_for(entry: catalogue.Entry) -> None:
    (function,) = ast.parse(entry.source).body
    assert isinstance(function, ast.FunctionDef)
    for before, line in itertools.pairwise(function.body):
        if isinstance(line, ast.Assert):
            asked = {node.attr for node in ast.walk(line) if isinstance(node, ast.Attribute)}
            known = {each for word in _words(before, line) for each in _WAITED_FOR.get(word.func.attr, ())}
            assert not asked & known, ast.unparse(line)
            said = {arg.value for word in _words(before) for arg in word.args if isinstance(arg, ast.Constant)}
            assert not ("conditions" in asked and said & _constants(line)), ast.unparse(line)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_waits_and_decides_only_by_words(entry: catalogue.Entry) -> None:
    (function,) = ast.parse(entry.source).body
    assert isinstance(function, ast.FunctionDef)
    assert not ast.get_docstring(function)  # its requirement says it
    assert len(function.body) <= 14


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_says_no_seconds_itself(entry: catalogue.Entry) -> None:
    # --patience stretches what it waits for, and has to stretch this, too
    assert not re.search(r"\bseconds\b['\"]?\s*[=:]\s*\d", entry.source)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_that_asks_what_tells_devices_apart_declares_it(entry: catalogue.Entry) -> None:
    asked = {node.attr for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.Attribute)}
    assert "identity" in entry.requirement.features or not asked & {"identity", "devices_named_in"}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_what_only_an_example_of_a_driver_says_is_no_must(entry: catalogue.Entry) -> None:
    assert not entry.requirement.source.startswith(_EXAMPLE) or entry.requirement.level is Level.SHOULD


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_requirement_names_mutants_that_there_are_or_says_why_it_is_unproven(entry: catalogue.Entry) -> None:
    assert bool(entry.requirement.mutants) is not bool(entry.requirement.unproven)
    assert all(known.about(name) for name in entry.requirement.mutants)


def test_driver_files_may_name_exactly_the_features_that_requirements_ask_for_and_no_other_key_declares() -> None:
    asked = {feature for entry in catalogue.read([SUITES]).every for feature in entry.requirement.features}
    assert set(features.DECLARED) == asked - set(features.DERIVED) - features.EXEMPTIBLE.keys()
    assert features.EXEMPTIBLE.keys() <= asked


def test_fewer_than_one_requirement_of_twenty_is_unproven() -> None:
    assert 20 * sum(bool(entry.requirement.unproven) for entry in ENTRIES) < len(ENTRIES)


def test_every_mutant_is_named_by_a_requirement_or_waits_for_one() -> None:
    named = {name for entry in ENTRIES for name in entry.requirement.mutants}
    assert known.every().keys() - named <= known.WAITING


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_what_a_test_has_changed_is_put_right_before_its_objects_are_deleted(entry: catalogue.Entry) -> None:
    (function,) = ast.parse(entry.source).body
    assert isinstance(function, ast.FunctionDef)
    # pytest undoes fixtures in the reverse order, and no pod ends without a kubelet and a driver.
    names = [each.arg for each in function.args.args]
    assert "scenario" not in names[1:]


@pytest.mark.parametrize("entry", catalogue.read([SUITES]).every, ids=lambda entry: entry.requirement.id)
def test_a_sentence_contains_the_word_of_its_level_and_of_no_other(entry: catalogue.Entry) -> None:
    words = set(re.findall(r"[a-z]+", entry.requirement.sentence))
    assert {level for level in Level if level.value.lower() in words} == {entry.requirement.level}


def test_every_test_of_the_suites_is_a_requirement() -> None:
    written = [
        node for path in TESTS for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)
    ]
    assert len(written) == len(ENTRIES)


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_a_manifest_is_what_a_user_would_write(path: Path) -> None:
    for each in _documents(path):
        assert "namespace" not in each["metadata"]
        if each["apiVersion"].startswith("resource.k8s.io/"):
            assert each["apiVersion"] == "resource.k8s.io/v1"
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_a_class_that_looks_at_attributes_takes_devices_of_its_driver_alone(path: Path) -> None:
    for each in _documents(path):
        if each["kind"] == "DeviceClass":
            first, *rest = [selector["cel"]["expression"] for selector in each["spec"].get("selectors", [])] or [""]
            # Devices of others lack the attribute, and whoever asks for it is a CEL error there.
            assert not any("attributes" in text for text in (first, *rest)) or first.startswith("device.driver == ")


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_a_class_of_the_drivers_devices_takes_those_of_the_class_of_the_driver_file_alone(path: Path) -> None:
    # A driver may have other kinds of devices under its name, and what suites know is true of one kind.
    text = path.read_text()
    if "kind: DeviceClass" in text and "device.driver == '{{ driver }}'" in text:
        assert text.index("device.driver == ") < text.index("{% for each in class_selectors %}")
        assert "attributes" not in text.partition("{% for each in class_selectors %}")[0]


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_an_expression_asks_whether_a_device_has_what_it_then_compares(path: Path) -> None:
    # A device without it is an error of CEL, and keeps the pod from all other devices as well.
    for text in _expressions(_documents(path)):
        for kind, domain, name in re.findall(r'device\.(attributes|capacity)\["([^"]*)"\]\.([\w-]+?)(?=[ .])', text):
            assert f'"{name}" in device.{kind}["{domain}"] && ' in text


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_a_node_is_meant_by_its_name_and_not_by_a_label_that_may_say_something_else(path: Path) -> None:
    assert not re.search(r"kubernetes\.io/hostname\W+(operator\W+\w+\W+values\W+)?\{\{ *node\b", path.read_text())
    assert "{{ node }}" not in "".join(re.findall(r"nodeSelector:\n.*", path.read_text()))


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_every_manifest_is_used(path: Path) -> None:
    assert str(path.relative_to(MANIFESTS)) in {name for entry in ENTRIES for name in entry.manifests}


def test_no_two_manifests_say_the_same() -> None:
    by_content: dict[str, list[str]] = {}
    for path in TEMPLATES:
        said = [line.rstrip() for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
        by_content.setdefault("\n".join(said), []).append(str(path.relative_to(MANIFESTS)))
    assert [names for names in by_content.values() if len(names) > 1] == []


@pytest.mark.parametrize("path", sorted((MANIFESTS / _FOR_ALL).iterdir()), ids=str)
def test_a_manifest_for_all_suites_is_used_by_more_than_one(path: Path) -> None:
    name = f"{_FOR_ALL}/{path.name}"
    assert len({entry.path.parent for entry in ENTRIES if name in entry.manifests}) > 1


def test_the_page_of_requirements_says_what_the_suites_say() -> None:
    assert (ROOT / "docs/requirements.md").read_text() == requirements_page.markdown(
        catalogue.read([SUITES]), SUITES.parent
    )

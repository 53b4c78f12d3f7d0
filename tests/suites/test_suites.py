"""Rules for all requirements, tests and manifests of the suites."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

import pytest
import yaml

from ci.mutants import dead, known
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
_BASIC = "basic"  # manifests that several suites use
_EXAMPLE = "sigs.k8s.io/dra-example-driver"
_FORBIDDEN = (ast.For, ast.While, ast.Try, ast.With, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.If, ast.ClassDef)

# What these verbs have already established. A pod that a driver keeps pending has spec.nodeName.
_WAITED_FOR = {
    "should_be_deallocated": {"devices", "pods", "is_protected"},
    "should_be_reserved_for": {"pods"},
    "should_stay_pending": {"phase", "node"},
    "should_be_unschedulable": {"phase", "node"},
    "should_stay_unscheduled": {"phase", "node"},
    "should_succeed": {"phase"},
    "should_run": {"phase"},
}
# Verbs that a pod passes for a wrong reason too, and verbs that show that the reason is the right one.
_KEPT_WAITING = {
    *("should_be_unschedulable", "should_stay_unscheduled", "should_stay_unbound"),
    *("should_stay_pending", "should_fail_to_prepare", "should_fail_to_prepare_again"),
}
_HAPPENS = {
    "should_run",
    "should_recover",
    "should_succeed",
    "should_end",
    "should_be_allocated",
    "should_be_scheduled",
}
# Requirements without a control: the text that the test waits for names the reason.
_SAY_WHY = {"CONFIG-024", "PRESCHED-001", "PRESCHED-002", "PRESCHED-003", "QUOTA-003", "SELECT-008", "SELECT-023"}
_REFUSALS = {"should_be_refused", "should_be_refused_on_create", "status_should_be_refused"}
_LAST_IS_ACCEPTED = ("ADMIN-004", "SHARE-011")  # they require that the API server accepts it


class _Anything(str):
    """A value for a variable of a manifest that has all attributes."""

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
    """Yield all CEL expressions in a document."""
    if isinstance(document, dict):
        yield from [document["cel"]["expression"]] if "cel" in document else ()
    for each in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from _expressions(each)


def _waits(*statements: ast.stmt) -> list[Any]:
    """Return the calls of verbs that wait."""
    calls = [node for each in statements for node in ast.walk(each) if isinstance(node, ast.Call)]
    return [each for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr.startswith("should_")]


def _constants(line: ast.stmt) -> set[Any]:
    return {node.value for node in ast.walk(line) if isinstance(node, ast.Constant)}


def _is_of_pytest(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pytest"


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "NONE"


@pytest.mark.parametrize("path", TESTS, ids=str)
def test_a_suite_imports_only_testbed_conformance_and_has_no_control_flow(path: Path) -> None:
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


def test_texts_of_kubernetes_are_only_in_testbed_kube_messages() -> None:
    texts = {each: name for name, each in vars(messages).items() if name.isupper()}
    assert len(texts) == sum(name.isupper() for name in vars(messages))
    for path in (*TESTS, *ROOT.glob("testbed/vocabulary/**/*.py"), *ROOT.glob("testbed/drivers/**/*.py")):
        literals = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        assert not literals & texts.keys(), f"{path}: use testbed.kube.messages"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_requirement_has_a_manifest_of_its_suite_or_a_basic_one(entry: catalogue.Entry) -> None:
    assert bool(entry.manifests) is (entry.requirement.tier is not Tier.STATIC)  # static tests create no objects
    for name in entry.manifests:
        assert (MANIFESTS / name).is_file()
        assert name.split("/")[0] in (entry.path.parent.name, _BASIC)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_has_at_most_three_assertions_and_ends_with_a_check(entry: catalogue.Entry) -> None:
    (function,) = ast.parse(entry.source).body
    assert isinstance(function, ast.FunctionDef)
    assert sum(isinstance(node, ast.Assert) for node in function.body) <= 3
    last = ast.unparse(function.body[-1])
    assert last.startswith("assert ") or "should_" in last or entry.requirement.id in _LAST_IS_ACCEPTED


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_no_assertion_repeats_a_wait(entry: catalogue.Entry) -> None:
    (function,) = ast.parse(entry.source).body
    assert isinstance(function, ast.FunctionDef)
    for before, line in itertools.pairwise(function.body):
        if isinstance(line, ast.Assert):
            asked = {node.attr for node in ast.walk(line) if isinstance(node, ast.Attribute)}
            known = {each for wait in _waits(before, line) for each in _WAITED_FOR.get(wait.func.attr, ())}
            assert not asked & known, ast.unparse(line)
            waited_for = {arg.value for wait in _waits(before) for arg in wait.args if isinstance(arg, ast.Constant)}
            assert not ("conditions" in asked and waited_for & _constants(line)), ast.unparse(line)


@pytest.mark.parametrize("path", TESTS, ids=str)
def test_a_suite_says_none_where_a_set_must_be_empty(path: Path) -> None:
    tree = ast.parse(path.read_text())
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"set", "frozenset"}, "compare with NONE: see testbed.vocabulary.checked_sets"


@pytest.mark.parametrize("path", TESTS, ids=str)
def test_a_plain_set_is_compared_with_members_or_with_none(path: Path) -> None:
    # Python asks the left side first, and only the vocabulary's sets refuse a comparison of nothing.
    compared = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Compare)]
    plain = [each for each in compared if isinstance(each.left, ast.SetComp)]
    assert all(isinstance(each.comparators[0], ast.Set) or _is_none(each.comparators[0]) for each in plain)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_what_must_not_happen_has_a_positive_control(entry: catalogue.Entry) -> None:
    (function,) = ast.parse(entry.source).body
    assert isinstance(function, ast.FunctionDef)
    called = {each.func.attr for each in _waits(*function.body)}
    if called & _KEPT_WAITING:
        assert bool(called & _HAPPENS) is (entry.requirement.id not in _SAY_WHY)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_that_a_container_shows_none_has_a_positive_control(entry: catalogue.Entry) -> None:
    compared = [node for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.Compare)]
    for shown in ("seen_devices", "settings"):
        sides = [each.comparators[-1] for each in compared if ast.unparse(each.left).endswith(f".{shown}")]
        assert not sides or not all(map(_is_none, sides)), f"nothing shows that {shown} would be found"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_refusal_is_judged_by_its_text(entry: catalogue.Entry) -> None:
    tree = ast.parse(entry.source)
    refusals = [each for each in _waits(*tree.body) if each.func.attr in _REFUSALS and each.func.value.id != "account"]
    compared = [node.comparators[0] for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    named = {each.id for each in compared if isinstance(each, ast.Name)}
    assigned = {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    judged = [*compared, *(value for name, value in assigned.items() if name in named)]
    assert all(each in judged for each in refusals)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_is_short_and_has_no_docstring(entry: catalogue.Entry) -> None:
    (function,) = ast.parse(entry.source).body
    assert isinstance(function, ast.FunctionDef)
    assert not ast.get_docstring(function)  # it has its requirement
    assert len(function.body) <= 14


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_has_no_literal_seconds(entry: catalogue.Entry) -> None:
    # --patience must apply to all times
    assert not re.search(r"\bseconds\b['\"]?\s*[=:]\s*\d", entry.source)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_test_that_uses_the_identity_of_devices_has_the_feature_identity(entry: catalogue.Entry) -> None:
    asked = {node.attr for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.Attribute)}
    assert "identity" in entry.requirement.features or not asked & {"identity", "devices_named_in"}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_requirements_from_the_example_driver_are_should(entry: catalogue.Entry) -> None:
    assert not entry.requirement.source.startswith(_EXAMPLE) or entry.requirement.level is Level.SHOULD


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_requirement_names_existing_mutants_or_a_reason_why_it_is_unproven(entry: catalogue.Entry) -> None:
    assert bool(entry.requirement.mutants) is not bool(entry.requirement.unproven)
    assert all(known.about(name) for name in entry.requirement.mutants)


def test_driver_files_may_name_exactly_the_features_of_requirements_that_have_no_other_key() -> None:
    asked = {feature for entry in catalogue.read([SUITES]).every for feature in entry.requirement.features}
    exempt = features.exemptions(features.EXEMPTIBLE)
    assert set(features.DECLARED) == asked - set(features.DERIVED) - features.EXEMPTIBLE.keys() - exempt
    assert features.EXEMPTIBLE.keys() <= asked


def test_fewer_than_one_requirement_of_twenty_is_unproven() -> None:
    assert 20 * sum(bool(entry.requirement.unproven) for entry in ENTRIES) < len(ENTRIES)


def test_every_mutant_is_used_by_a_requirement_or_waits_for_one() -> None:
    named = {name for entry in ENTRIES for name in entry.requirement.mutants}
    assert known.every().keys() - named <= known.WAITING | known.OF_SHAPES | dead.CASES.keys()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_the_scenario_is_the_first_fixture_of_a_test(entry: catalogue.Entry) -> None:
    (function,) = ast.parse(entry.source).body
    assert isinstance(function, ast.FunctionDef)
    # pytest tears fixtures down in reverse order. Deleting pods needs a running kubelet and driver, which other fixtures restore.
    names = [each.arg for each in function.args.args]
    assert "scenario" not in names[1:]


@pytest.mark.parametrize("entry", catalogue.read([SUITES]).every, ids=lambda entry: entry.requirement.id)
def test_a_sentence_contains_only_the_word_of_its_level(entry: catalogue.Entry) -> None:
    words = set(re.findall(r"[a-z]+", entry.requirement.sentence))
    assert {level for level in Level if level.value.lower() in words} == {entry.requirement.level}


def test_every_test_of_the_suites_has_a_requirement() -> None:
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
def test_a_class_that_reads_attributes_first_selects_its_driver(path: Path) -> None:
    for each in _documents(path):
        if each["kind"] == "DeviceClass":
            first, *rest = [selector["cel"]["expression"] for selector in each["spec"].get("selectors", [])] or [""]
            # Reading an attribute that devices of other drivers lack is a CEL runtime error.
            assert not any("attributes" in text for text in (first, *rest)) or first.startswith("device.driver == ")


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_a_class_of_the_driver_has_the_selectors_of_the_driver_files_class(path: Path) -> None:
    # A driver may publish several kinds of devices, and the driver file describes one kind.
    text = path.read_text()
    if "kind: DeviceClass" in text and "device.driver == '{{ driver }}'" in text:
        assert text.index("device.driver == ") < text.index("{% for each in class_selectors %}")
        assert "attributes" not in text.partition("{% for each in class_selectors %}")[0]


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_an_expression_checks_that_an_attribute_exists(path: Path) -> None:
    # A CEL runtime error for one device makes the pod unschedulable.
    for text in _expressions(_documents(path)):
        for kind, domain, name in re.findall(r'device\.(attributes|capacity)\["([^"]*)"\]\.([\w-]+?)(?=[ .])', text):
            assert f'"{name}" in device.{kind}["{domain}"] && ' in text


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_a_node_is_selected_by_its_name_and_not_by_its_hostname_label(path: Path) -> None:
    assert not re.search(r"kubernetes\.io/hostname\W+(operator\W+\w+\W+values\W+)?\{\{ *node\b", path.read_text())
    assert "{{ node }}" not in "".join(re.findall(r"nodeSelector:\n.*", path.read_text()))


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_every_manifest_is_used(path: Path) -> None:
    assert str(path.relative_to(MANIFESTS)) in {name for entry in ENTRIES for name in entry.manifests}


def test_no_two_manifests_are_equal() -> None:
    by_content: dict[str, list[str]] = {}
    for path in TEMPLATES:
        lines = [line.rstrip() for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
        by_content.setdefault("\n".join(lines), []).append(str(path.relative_to(MANIFESTS)))
    assert [names for names in by_content.values() if len(names) > 1] == []


@pytest.mark.parametrize("path", sorted((MANIFESTS / _BASIC).iterdir()), ids=str)
def test_a_basic_manifest_is_used_by_several_suites(path: Path) -> None:
    name = f"{_BASIC}/{path.name}"
    assert len({entry.path.parent for entry in ENTRIES if name in entry.manifests}) > 1


def test_the_page_of_requirements_is_up_to_date() -> None:
    assert (ROOT / "docs/requirements.md").read_text() == requirements_page.markdown(
        catalogue.read([SUITES]), SUITES.parent
    )

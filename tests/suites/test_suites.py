"""What every requirement, test and manifest of the suites has to be."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from fake_driver.faults import FAULTS
from testbed import folders
from testbed.conformance import catalogue, document
from testbed.models.words import Tier
from testbed.rendering import render_file

SUITES, MANIFESTS = folders.data("suites"), folders.data("manifests") / "suites"
TESTS, TEMPLATES = sorted(SUITES.rglob("test_*.py")), sorted(MANIFESTS.rglob("*.yaml"))
ENTRIES = catalogue.read([SUITES]).entries
ROOT = Path(__file__).parents[2]
_FORBIDDEN = (ast.For, ast.While, ast.Try, ast.With, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.If, ast.ClassDef)


def _documents(path: Path) -> list[Any]:
    return list(
        yaml.safe_load_all(render_file(path, {"device_class": "c", "driver": "d", "image": "i"}, allow_unused=True))
    )


@pytest.mark.parametrize("path", TESTS, ids=str)
def test_a_suite_imports_only_its_words_and_reads_from_top_to_bottom(path: Path) -> None:
    tree = ast.parse(path.read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {"testbed.conformance"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, _FORBIDDEN)]
    functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert all(name.startswith("test_") for name in functions)
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_requirement_has_a_manifest_beside_its_suite(entry: catalogue.Entry) -> None:
    assert bool(entry.manifests) is (entry.requirement.tier is not Tier.STATIC)  # which makes nothing
    for name in entry.manifests:
        assert (MANIFESTS / name).is_file()
        assert name.split("/")[0] == entry.path.parent.name


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_requirement_is_asserted_in_one_to_three_lines(entry: catalogue.Entry) -> None:
    asserts = [node for node in ast.walk(ast.parse(entry.source)) if isinstance(node, ast.Assert)]
    assert 1 <= len(asserts) <= 3


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.requirement.id)
def test_a_requirement_names_faults_of_the_fake_driver_that_fail_it(entry: catalogue.Entry) -> None:
    assert entry.requirement.mutants
    assert set(entry.requirement.mutants) <= set(FAULTS)


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
def test_every_manifest_is_used(path: Path) -> None:
    assert str(path.relative_to(MANIFESTS)) in {name for entry in ENTRIES for name in entry.manifests}


def test_the_page_of_requirements_says_what_the_suites_say() -> None:
    assert (ROOT / "docs/requirements.md").read_text() == document.markdown(catalogue.read([SUITES]), SUITES.parent)

"""The pages in docs/features, as far as they can be checked without a cluster; tests/e2e/commands/test_feature_pages.py runs them."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.e2e.pages import FOLDER, Page, Step, pages, read

PAGES = pages()
INDEX = (FOLDER / "index.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_manifests_of_a_page_are_complete_and_used(page: Page) -> None:
    used = " ".join((*page.up, *(step.command for step in page.steps)))
    for name, content in page.files:
        assert all({"apiVersion", "kind", "metadata"} <= set(one) for one in yaml.safe_load_all(content))
        assert name in used, f"{name} is never used"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_deletes_the_objects_that_it_creates(page: Page) -> None:
    commands = "\n".join(step.command for step in page.steps)
    created = set(re.findall(r"kubectl (?:apply|create) -f ([-\w.]+)", commands))
    deleted = set(re.findall(r"kubectl delete -f ([-\w.]+)", commands))
    refused = {name for name in created if name.startswith("refused")}
    assert created - refused == deleted


def test_the_index_has_all_pages_and_no_others() -> None:
    assert {page.name for page in PAGES} == set(re.findall(r"\]\(([-\w]+)\.md\)", INDEX))


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (("a   b",), "a b\n", True),
        (("pod/…  created",), "pod/x-1 created\n", True),
        (("pod/… created",), "pod/ created\n", False),
        (("a", "…", "d"), "a\nb\nc\nd\n", True),
        (("a", "…", "d"), "a\nd\n", True),
        (("a", "…", "d"), "a\nb\n", False),
        (("a",), "a\nb\n", False),
        ((), "", True),
        ((), "a\n", False),
        (("a.c",), "abc\n", False),
    ],
)
def test_an_ellipsis_matches_any_text_or_lines(shown: tuple[str, ...], printed: str, same: bool) -> None:
    assert Step("x", shown).matches(printed) is same


PAGE = "text\n\n```console\n$ dra-testbed up --nodes 1\n```\n```yaml\n# a.yaml\nx: 1\n```\n```console\n$ one -f a.yaml\nsaid\n$ two\n```\n"


def test_files_and_commands_of_a_page_are_read_in_order() -> None:
    assert read("p", PAGE) == Page(
        "p", ("--nodes", "1"), (("a.yaml", "# a.yaml\nx: 1\n"),), (Step("one -f a.yaml", ("said",)), Step("two", ()))
    )


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("dra-testbed up", "up", "the first command is 'up --nodes 1'"),
        ("# a.yaml", "# a", "must begin with # NAME.yaml"),
        ("$ one", "one", "must begin with a command"),
    ],
)
def test_a_page_that_cannot_be_run_is_an_error(old: str, new: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read("p", PAGE.replace(old, new))


def test_the_name_of_the_node_is_replaced_everywhere() -> None:
    page = read("p", PAGE.replace("x: 1", "x: node-1").replace("said", "on-node-1").replace("two", "two node-1"))
    adapted = page.with_node("a-worker")
    assert adapted.files == (("a.yaml", "# a.yaml\nx: a-worker\n"),)
    assert adapted.steps == (Step("one -f a.yaml", ("on-a-worker",)), Step("two a-worker", ()))

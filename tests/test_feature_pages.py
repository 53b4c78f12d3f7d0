"""What can be known of the pages in docs/features without a cluster; tests/e2e/commands/test_feature_pages.py runs them."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.e2e.pages import FOLDER, Page, Step, pages, read

PAGES = pages()
INDEX = (FOLDER / "index.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_whole_manifests_and_uses_them_all(page: Page) -> None:
    used = " ".join((*page.up, *(step.command for step in page.steps)))
    for name, content in page.files:
        assert all({"apiVersion", "kind", "metadata"} <= set(one) for one in yaml.safe_load_all(content))
        assert name in used, f"{name} is never used"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_cleans_up_what_it_makes(page: Page) -> None:
    made = {word for step in page.steps for word in re.findall(r"kubectl (?:apply|create) -f ([-\w.]+)", step.command)}
    gone = {word for step in page.steps for word in re.findall(r"kubectl delete -f ([-\w.]+)", step.command)}
    refused = {name for name in made if name.startswith("refused")}
    assert made - refused == gone


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
def test_the_notation_for_what_varies(shown: tuple[str, ...], printed: str, same: bool) -> None:
    assert Step("x", shown).matches(printed) is same


PAGE = "text\n\n```console\n$ dra-testbed up --nodes 1\n```\n```yaml\n# a.yaml\nx: 1\n```\n```console\n$ one -f a.yaml\nsaid\n$ two\n```\n"


def test_a_page_is_read_in_its_order() -> None:
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
def test_a_page_that_cannot_be_run_is_refused(old: str, new: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read("p", PAGE.replace(old, new))


def test_a_reader_puts_the_name_of_a_node_in_the_place_of_ours() -> None:
    page = read("p", PAGE.replace("x: 1", "x: node-1").replace("said", "on-node-1").replace("two", "two node-1"))
    there = page.with_node("a-worker")
    assert there.files == (("a.yaml", "# a.yaml\nx: a-worker\n"),)
    assert there.steps == (Step("one -f a.yaml", ("on-a-worker",)), Step("two a-worker", ()))

from __future__ import annotations

import pytest

from testbed.kube.ownership import Owner, identity_of, is_ours, new_identity, owner_of

MINE = Owner("gpus", "aaaaaaaaaaaa", "box", "boot", "pid:[1]", 7, 99, "/state/gpus")
POD = {"kind": "Pod", "metadata": {"name": "p", "labels": {"app": "x"}, "annotations": {"a": "b"}}}


def test_marking_adds_labels_and_annotation_and_keeps_others() -> None:
    marked = MINE.mark(POD, extra="yes")
    assert MINE.owns(marked)
    assert owner_of([marked]) == MINE
    assert marked["metadata"]["labels"] == {
        "app": "x",
        "extra": "yes",
        "dra-testbed.example/managed-by": "dra-testbed",
        "dra-testbed.example/testbed": "gpus",
        "dra-testbed.example/testbed-id": "aaaaaaaaaaaa",
    }
    assert marked["metadata"]["annotations"]["a"] == "b"
    assert POD["metadata"] == {"name": "p", "labels": {"app": "x"}, "annotations": {"a": "b"}}


def test_testbeds_of_the_same_name_are_different_owners() -> None:
    other = Owner("gpus", new_identity())
    marked = MINE.mark(POD)
    assert is_ours(marked)
    assert not other.owns(marked)
    assert other.manager != MINE.manager
    assert not is_ours(POD)
    assert identity_of(POD) == ""


def test_the_owner_is_read_from_the_first_valid_annotation() -> None:
    marked = MINE.mark(POD)
    silent = {"metadata": {"labels": marked["metadata"]["labels"]}}
    lying = {"metadata": {**silent["metadata"], "annotations": {"dra-testbed.example/owner": "{}"}}}
    stolen = Owner("gpus", "bbbbbbbbbbbb").mark(POD)
    stolen["metadata"]["annotations"] = marked["metadata"]["annotations"]
    assert owner_of([silent, lying, marked]) == MINE
    assert owner_of([silent, lying, stolen]) is None


def test_an_owner_is_shown_with_its_host() -> None:
    assert str(MINE) == "testbed gpus of host box (process 7)"
    assert str(Owner("gpus", "x")) == "testbed gpus"


@pytest.mark.parametrize(
    "text",
    [
        '{"testbed": "gpus", "identity": "aaaaaaaaaaaa", "pid": []}',
        '{"testbed": "gpus", "identity": "aaaaaaaaaaaa", "pid": "../1"}',
        '{"testbed": "gpus", "identity": "aaaaaaaaaaaa", "folder": 5}',
        r'{"testbed": "gpus", "identity": "aaaaaaaaaaaa", "folder": "\u0000"}',
        "[" * 100_000,
    ],
    ids=["list", "text", "number", "nul", "deep"],
)
def test_an_owner_that_a_tenant_invents_is_no_owner(text: str) -> None:
    made = MINE.mark(POD)
    made["metadata"]["annotations"]["dra-testbed.example/owner"] = text
    assert owner_of([made]) is None

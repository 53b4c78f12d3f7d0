"""Why a container runtime could not resolve a CDI ID, from the CDI files of the node."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from testbed.vocabulary.cluster.cdi_specs import entries, explain_unresolvable

ID = "a.example/gpu=0"
NEITHER = ", so the container runtime uses neither"


def _file(name: str = "0", value: str = "1") -> str:
    device = {"name": name, "containerEdits": {"env": [f"GPU={value}"]}}
    return json.dumps({"kind": "a.example/gpu", "devices": [device]})


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        ({}, f"no CDI file on node-1 defines {ID}, which the driver returned"),
        ({"/run/a.json": _file("1")}, f"no CDI file on node-1 defines {ID}, which the driver returned"),
        (
            {"/run/a.json": "{"},
            f"no CDI file on node-1 defines {ID}, which the driver returned; /run/a.json is unreadable",
        ),
        (
            {"/run/a.json": _file(), "/run/b.json": _file(value="2")},
            f"2 CDI files (/run/a.json, /run/b.json) define {ID} with different content on node-1{NEITHER}",
        ),
        (
            {"/run/a.json": _file(), "/run/b.json": _file()},
            f"2 CDI files (/run/a.json, /run/b.json) define {ID} with the same content on node-1{NEITHER}",
        ),
        (
            {"/run/a.json": _file()},
            f"/run/a.json on node-1 defines {ID} now, but did not when the container was created",
        ),
    ],
)
def test_the_cause_is_the_one_that_the_files_show(files: dict[str, str], cause: str) -> None:
    assert explain_unresolvable([ID], files, "node-1") == cause


def test_files_of_two_folders_do_not_conflict() -> None:
    found = explain_unresolvable([ID, "a.example/gpu=9"], {"/etc/a.json": _file(), "/run/a.json": _file()}, "node-1")
    assert found == "no CDI file on node-1 defines a.example/gpu=9, which the driver returned"


def test_a_file_that_is_huge_or_deep_when_it_is_parsed_is_unreadable() -> None:
    lines = [
        "a: &a [x, x]",
        *(f"{one}: &{one} [{', '.join([f'*{other}'] * 10)}]" for other, one in pairwise("abcdefgh")),
    ]
    bomb = "\n".join([*lines, "kind: a.example/gpu", "devices: [{name: '0', bomb: *h}]"])
    for text in (bomb, "[" * 100_000, "- " * 100_000):
        assert [each.id for each in entries("/run/a.yaml", text)] == [""]

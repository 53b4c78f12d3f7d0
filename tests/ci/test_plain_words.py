"""Which words ci/plain_words.py refuses, and where it looks for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.plain_words import check, files


def found(root: Path, name: str, content: str) -> list[tuple[int, str]]:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(content)
    return [(each.line, each.word) for each in check(Path(name), root)]


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("Nobody uses it.", "Nobody"),
        ("Whoever reads it, and somebody else.", "Whoever somebody"),
        ("When he stops, the pod is told.", "he is told"),
        ("Two nodes, one of which is tainted.", "of which"),
        ("In such a case, leave it as it is.", "such as it is"),
        ("It has to be had all the same.", "has to be had all the same"),
        ("What goes with it comes true.", "goes with comes true"),
    ],
)
def test_a_word_of_the_list_is_refused(tmp_path: Path, sentence: str, word: str) -> None:
    assert sorted(" ".join(each for _, each in found(tmp_path, "a.md", sentence)).split()) == sorted(word.split())


@pytest.mark.parametrize(
    "sentence",
    [
        "Features such as taints.",
        "bind: no such file or directory",
        "The version as it is served by the API server.",
        "The two can be told apart.",
        "The driver nobody.example.com and `nobody` and she.",
        "```\nnobody\n```",
        "`he` is a word <!-- words: an example -->",
        "The user nobody. <!-- words: a user of Linux -->",
        "| CLAIM-001 | caught: the kubelet is told nothing | 0bad0bad |",
    ],
)
def test_good_english_and_quoted_text_is_allowed(tmp_path: Path, sentence: str) -> None:
    assert found(tmp_path, "a.md", sentence) == []


PYTHON = '''"""Nobody knows."""

def test_nobody_knows() -> None:  # whoever
    """Return what
    he wants."""
    raise ValueError(f"somebody took {name}")
    print("nobody")  # one word is data
    print("from Kubernetes: in such a case")  # words: quoted from the API server
'''


def test_docstrings_comments_messages_and_names_of_tests_are_read(tmp_path: Path) -> None:
    expected = [(1, "Nobody"), (3, "nobody"), (3, "whoever"), (4, "he"), (6, "somebody")]

    assert sorted(found(tmp_path, "testbed/a.py", PYTHON)) == expected


def test_the_literals_of_tests_are_not_read(tmp_path: Path) -> None:
    assert (6, "somebody") not in found(tmp_path, "tests/test_a.py", PYTHON)


@pytest.mark.parametrize(
    "line", ["# nobody", "a: b # nobody", "    description: for nobody", "description = for nobody"]
)
def test_comments_and_descriptions_of_other_files_are_read(tmp_path: Path, line: str) -> None:
    assert found(tmp_path, "a.yaml", f"a: 1\n{line}\n") == [(2, "nobody")]


def test_all_kinds_of_files_are_checked() -> None:
    some = {
        "README.md",
        "docs/hardware.md",
        "testbed/cli/run.py",
        "tests/ci/test_plain_words.py",
        "ci/as-root",
        "ci/release",
        "tox.ini",
    }

    assert some <= {str(file) for file in files()}
    assert [file for file in files() if "stubs" in file.parts] == []

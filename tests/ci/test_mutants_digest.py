"""What changes the digest of a test, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.mutants.digest import digest, manifest_values
from testbed import folders
from testbed.conformance import Requirement
from testbed.conformance.catalogue import Entry
from testbed.conformance.requirement import E2E, MUST

TEST = '''@requirement(
    "A-001",
    "It works.",
    mutants=("no-env",),
)
@pytest.mark.parametrize("count", [1, 2])
def test_it(scenario, count):
    """Look at the pod."""
    scenario.apply("a.yaml", count=count)  # a comment

    assert scenario.pod("first").devices == {"gpu-0"}
'''
MANIFEST = """# A pod.
kind: Pod
metadata:
  labels: {one: "1", two: {{ label }}}
spec:
  containers:
  {% for number in range(count) %}
  - name: c{{ number }}
  {% endfor %}
  - name: last
"""


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(folders, "data", lambda name: tmp_path / name)
    file = tmp_path / "manifests/suites/a.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(MANIFEST)
    return file


def digest_of(source: str) -> str:
    return digest(Entry(Requirement("A-001", "It works.", MUST, E2E, "here"), Path("/suites/a.py"), "test_it", source))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('"It works."', '"The pod must run."', id="sentence"),
        pytest.param('"no-env"', '"another"', id="mutants"),
        pytest.param("Look at the pod.", "Wait until the pod runs.", id="docstring"),
        pytest.param('    """Look at the pod."""\n', "", id="no docstring"),
        pytest.param("  # a comment", "", id="comment"),
        pytest.param('{"gpu-0"}', "{\n        'gpu-0',\n    }", id="formatting"),
        pytest.param("\n\n    assert", "\n    assert", id="blank line"),
    ],
)
@pytest.mark.usefixtures("manifest")
def test_rewording_and_formatting_a_test_keeps_its_digest(old: str, new: str) -> None:
    assert old in TEST
    assert digest_of(TEST.replace(old, new)) == digest_of(TEST)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("gpu-0", "gpu-1", id="assertion"),
        pytest.param("apply", "delete", id="verb"),
        pytest.param("[1, 2]", "[1, 3]", id="parameter"),
        pytest.param("count=count", "count=1", id="variable"),
        pytest.param("assert ", "", id="no assertion"),
    ],
)
@pytest.mark.usefixtures("manifest")
def test_changing_the_code_of_a_test_changes_its_digest(old: str, new: str) -> None:
    assert old in TEST
    assert digest_of(TEST.replace(old, new)) != digest_of(TEST)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("# A pod.\n", "# Another pod.\n\n# Two comments.\n", id="comment"),
        pytest.param("kind: Pod", "kind: 'Pod' # of one container", id="quotes"),
        pytest.param('{one: "1", two: {{ label }}}', "\n    one: '1'\n    two: {{label}}", id="block style"),
        pytest.param("  - name: last", "\n  -   name:   last", id="blanks"),
        pytest.param("{% for number in range(count) %}", "{%for number in range( count )%}", id="statement"),
    ],
)
def test_formatting_a_manifest_keeps_the_digest(manifest: Path, old: str, new: str) -> None:
    assert old in MANIFEST
    before = digest_of(TEST)
    manifest.write_text(MANIFEST.replace(old, new))
    assert digest_of(TEST) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("Pod", "Deployment", id="value"),
        pytest.param("name: last", "image: last", id="key"),
        pytest.param('"1"', "1", id="type of a value"),
        pytest.param("{{ label }}", '"{{ label }}"', id="type of an expression"),
        pytest.param("{{ label }}", "{{ other }}", id="expression"),
        pytest.param("range(count)", "range(3)", id="statement"),
        pytest.param("{% endfor %}\n  - name: last\n", "- name: last\n  {% endfor %}\n", id="place of a statement"),
        pytest.param("  - name: last\n", "", id="item"),
    ],
)
def test_changing_a_value_in_a_manifest_changes_the_digest(manifest: Path, old: str, new: str) -> None:
    assert old in MANIFEST
    before = digest_of(TEST)
    manifest.write_text(MANIFEST.replace(old, new))
    assert digest_of(TEST) != before


def test_an_expression_may_write_yaml_behind_a_colon() -> None:
    template = "conditions:{{ ' []' if not some else '' }}\n{% for each in some %}\n- type: {{ each }}\n{% endfor %}\n"
    assert manifest_values(template) != manifest_values(template.replace("not some", "some"))


def test_every_manifest_of_the_suites_can_be_parsed() -> None:
    manifests = sorted((folders.data("manifests") / "suites").rglob("*.yaml"))
    assert len(manifests) > 100
    assert [path.name for path in manifests if len(manifest_values(path.read_text())) < 5] == []

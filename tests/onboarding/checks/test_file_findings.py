"""All mistakes of a driver file are found at once, each with its line, without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.onboarding.checks.file_findings import file_findings
from testbed.onboarding.checks.finding import Finding, with_lines

_FILE = """\
apiVersion: dra-testbed/v1alpha1
kind: DriverFile
metadata: {name: acme}
spec:
  driver: gpu.acme.example
  install: {manifests: [install.yaml]}
  pods: {namespace: acme, selector: app=acme, container: plugin}
  devices:
    classes: [gpu.acme.example]
  probe: {env: '^ACME_(?P<name>\\w+)='}
"""


def _findings(folder: Path, text: str, manifest: str = "") -> list[Finding]:
    (folder / "install.yaml").write_text(manifest)
    path = folder / "driver.yaml"
    path.write_text(text)
    return with_lines(file_findings(path)[1], path)


def test_a_valid_file_has_no_findings(tmp_path: Path) -> None:
    assert _findings(tmp_path, _FILE) == []


def test_all_mistakes_are_found_with_line_and_near_match(tmp_path: Path) -> None:
    wrong = _FILE.replace("selector:", "selektor:").replace("name>", "nam>").replace("  devices:", "  device:")
    found = _findings(tmp_path, wrong)
    assert [(each.line, each.key) for each in found] == [
        (7, "spec.pods.selektor"),
        (8, "spec.device"),
        (10, "spec.probe.env"),
    ]
    assert "did you mean selector?" in found[0].what


@pytest.mark.parametrize(
    ("more", "manifest", "key", "line", "what"),
    [
        ("  known: [{id: PREP-999, reason: x}]\n", "", "spec.known[0].id", 11, "there is no such requirement"),
        ("", "kind: Pod\nname: x\n", "spec.install", 6, "not a Kubernetes object"),
        ("", "{{ missing }}", "spec.install", 6, "missing"),
        ("  companions: [driver.yaml]\n", "", "spec.companions", 11, "have the same driver gpu.acme.example"),
    ],
)
def test_what_the_file_names_is_checked_too(
    tmp_path: Path, more: str, manifest: str, key: str, line: int, what: str
) -> None:
    (found,) = _findings(tmp_path, _FILE + more, manifest)
    assert (found.key, found.line) == (key, line)
    assert what in found.what

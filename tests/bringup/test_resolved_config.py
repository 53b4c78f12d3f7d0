"""What is refused in a configuration without looking at the host or a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.bringup import resolved_config
from testbed.bringup.resolved_config import resolve
from testbed.errors import UsageError
from testbed.models.config import effective


def test_hardware_that_exceeds_a_limit_on_any_node_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    beyond = "{nodes: [node-3], attributes: {" + ", ".join(f"a{index}: 1" for index in range(31)) + "}}"
    file.write_text(
        "{apiVersion: dra-testbed/v1alpha1, kind: Hardware, metadata: {name: mine},"
        f" spec: {{devices: [{{kind: gpu, count: 1}}], changes: [{beyond}]}}}}"
    )
    resolve(effective(None, {"hardware": str(file), "nodes": 2}))
    with pytest.raises(UsageError, match="example-node-3: device gpu-0: it has 33 attributes"):
        resolve(effective(None, {"hardware": str(file), "nodes": 3}))


def test_hardware_of_other_drivers_and_the_shipped_hardware_are_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolved_config, "expected_slices", lambda *_: pytest.fail("the fake driver was asked"))
    file = tmp_path / "mine.yaml"
    file.write_text("not checked")

    for flags in ({"hardware": "h100"}, {"hardware": str(file), "driver": "none"}):
        resolve(effective(None, flags))

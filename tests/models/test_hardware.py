"""The model of hardware files agrees with the fake driver's own parser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fake_driver.errors import ConfigurationError
from fake_driver.hardware import container_edits, hardware_file
from testbed.errors import UsageError
from testbed.models.hardware import DeviceNode, Group, HardwareFile, Hook, Mount
from testbed.models.strict import Strict, load

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "hardware.md").read_text(), re.MULTILINE | re.DOTALL)
FILES = sorted((ROOT / "manifests" / "hardware").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shipped_hardware_matches_the_model(file: Path) -> None:
    assert load(file, HardwareFile).metadata.name == file.stem


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: re.findall(r"name: (\w+)}", text)[0])
def test_the_examples_of_the_documentation_match_the_model(text: str, tmp_path: Path) -> None:
    (tmp_path / "example.yaml").write_text(text)
    assert load(tmp_path / "example.yaml", HardwareFile)


def test_model_and_parser_have_the_same_fields_of_container_edits() -> None:
    fields: dict[str, type[Strict]] = {"deviceNodes": DeviceNode, "mounts": Mount, "hooks": Hook}
    assert {key: set(known) for key, (known, _) in container_edits._LISTS.items()} == {
        key: {field.alias for field in model.model_fields.values()} for key, model in fields.items()
    }
    needed = {key: {f.alias for f in model.model_fields.values() if f.is_required()} for key, model in fields.items()}
    assert {key: set(needs) for key, (_, needs) in container_edits._LISTS.items()} == needed


def test_model_and_parser_have_the_same_keys_of_a_group() -> None:
    with pytest.raises(ConfigurationError) as refused:
        hardware_file.parse("spec: {devices: [{zzz: 1}]}", "x")
    known = re.findall(r"zzz is unknown; known: (.*)", str(refused.value))[0]
    assert {field.alias for field in Group.model_fields.values()} == set(known.split(", "))


@pytest.mark.parametrize(
    "group",
    [
        {"kind": "gpu"}, {"count": 1}, {"kind": "GPU", "count": 1}, {"kind": "gpu", "count": 0}, {"kind": "gpu", "count": "1"},
        {"kind": "gpu", "count": 1, "capacties": {}}, {"kind": "gpu", "count": 1, "attributes": {"a": 1.5}},
        {"kind": "gpu", "count": 1, "capacity": {"m": "much"}}, {"kind": "gpu", "count": 1, "spread": {"a": []}},
        {"kind": "gpu", "count": 1, "taints": [{"key": "a", "effect": "Never"}]},
        {"kind": "gpu", "count": 1, "network": {"interface": "net0"}},
        {"kind": "gpu", "count": 1, "partitions": {"counters": {"m": 1}, "profiles": []}},
        {"kind": "gpu", "count": 1, "containerEdits": {"env": []}},
        {"kind": "gpu", "count": 1, "containerEdits": {"deviceNodes": [{}]}},
        {"kind": "gpu", "count": 1, "containerEdits": {"deviceNodes": [{"path": "dev/x"}]}},
        {"kind": "gpu", "count": 1, "containerEdits": {"mounts": [{"hostPath": "/x"}]}},
        {"kind": "gpu", "count": 1, "containerEdits": {"hooks": [{"hookName": "createRun", "path": "/x"}]}},
        {"kind": "gpu", "count": 1, "containerEdits": {"additionalGids": [-1]}},
    ],
)  # fmt: skip
def test_model_and_parser_refuse_the_same_mistakes(group: dict[str, Any], tmp_path: Path) -> None:
    document = {"apiVersion": "dra-testbed/v1alpha1", "kind": "Hardware", "metadata": {"name": "x"}}
    text = yaml.safe_dump({**document, "spec": {"devices": [group]}})
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(UsageError):
        load(tmp_path / "x.yaml", HardwareFile)
    with pytest.raises(ConfigurationError):
        hardware_file.parse(text, "x")

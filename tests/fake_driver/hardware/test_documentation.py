"""docs/hardware.md agrees with the code and the shipped hardware files."""

import re
from pathlib import Path

import pytest

from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import pools

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "hardware.md").read_text()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
GROUP_KEYS = {
    "kind", "count", "attributes", "capacity", "spread", "perDevice", "nodes", "taints", "allowMultipleAllocations", "partitions",
    "network", "bindsToNode", "bindingConditions", "bindingFailureConditions", "attaching", "containerEdits",
}  # fmt: skip


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: re.findall(r"name: (\w+)}", text)[0])
def test_each_example_is_a_hardware_file(text: str) -> None:
    assert sum(len(pool.devices) for pool in pools(hardware_file.parse(text, "example"), "node-1"))


def test_all_shipped_hardware_is_in_the_table() -> None:
    shipped = {file.stem for file in (ROOT / "manifests" / "hardware").glob("*.yaml")}
    assert shipped == set(re.findall(r"^\| `([-\w]+)` \| [a-z]", TEXT.partition("## A file")[0], re.MULTILINE))


def test_the_table_has_exactly_the_keys_of_a_group() -> None:
    rows = re.findall(r"^\| (`.*?) \|", TEXT.partition("### A group of devices")[2].partition("###")[0], re.MULTILINE)
    explained = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    assert explained == GROUP_KEYS
    with pytest.raises(Exception, match="zzz is unknown; known: ") as refused:
        hardware_file.parse("apiVersion: x\nspec: {devices: [{zzz: 1}]}", "x")
    known = re.findall(r"devices\[0\]\.zzz is unknown; known: (.*)", str(refused.value))[0]
    assert set(known.split(", ")) == GROUP_KEYS

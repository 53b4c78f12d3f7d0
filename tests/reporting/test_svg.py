from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from testbed.drivers.expected_slices import expected_slices
from testbed.folders import data
from testbed.reporting.svg import Box, draw
from testbed.reporting.topology import locations

HARDWARE = data("manifests") / "hardware"
DOCS = Path(__file__).parents[2] / "docs"


def drawing(name: str) -> str:
    return draw(locations(expected_slices(HARDWARE / f"{name}.yaml", "node-1"), "node-1"))


def test_the_drawing_in_the_documentation_is_up_to_date() -> None:
    drawn = drawing("gpus-and-nics")
    assert (DOCS / "hardware.svg").read_text() == drawn, (
        "dra-testbed hardware show gpus-and-nics -o svg > docs/hardware.svg"
    )


def test_every_device_is_drawn_and_taints_are_visible() -> None:
    text = "".join(ElementTree.fromstring(drawing("mixed-fleet")).itertext())
    assert all(part in text for part in ("node-1", "NUMA node 1", "gpu-2", "broken=ecc:NoExecute"))
    assert 'class="tainted"' in drawing("mixed-fleet")


def test_partitions_are_counted_in_the_box_of_the_whole_device() -> None:
    assert "7 \N{MULTIPLICATION SIGN} 1g.5gb" in drawing("a100")
    assert "gpu-0-1g-5gb" not in drawing("a100")


def test_many_similar_devices_are_one_box() -> None:
    assert "gpu-0 … gpu-124" in drawing("thousand")


def test_a_box_is_large_enough_for_its_content() -> None:
    small, large = Box("a", "device", ("x",)), Box("b", "device", ("a longer line", "y"))
    beside, below = Box("t", "root", inner=(small, large), across=True), Box("t", "root", inner=(small, large))
    assert beside.width > small.width + large.width
    assert below.width > large.width
    assert below.height > small.height + large.height > beside.height > large.height


def test_names_are_escaped() -> None:
    slice_ = {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d", "nodeName": "<n&", "pool": {"name": "<n&", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "<g>", "attributes": {"model": {"string": "</svg>"}}}],
        },
    }  # fmt: skip
    assert "</svg>" in "".join(ElementTree.fromstring(draw(locations([slice_]))).itertext())

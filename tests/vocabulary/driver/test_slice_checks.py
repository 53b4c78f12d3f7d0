from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import pools as fake_pools
from fake_driver.mutants import selection
from fake_driver.preparing.inventory import Inventory
from fake_driver.publishing import slices
from fake_driver.publishing.planner import plan
from fake_driver.roles.node_driver import Parts
from testbed import folders
from testbed.drivers.published.slices import pools
from testbed.vocabulary.driver import slice_checks

DRIVER = "d.example.com"
NODES = {"node-1": "uid-1", "node-2": "uid-2"}
HARDWARE = sorted((folders.data("manifests") / "hardware").glob("*.yaml"))


def _published(node: str, fault: str = "", hardware: Path = HARDWARE[0]) -> list[Any]:
    """Return the slices that the fake driver publishes on a node."""
    here, *network = fake_pools(hardware_file.read(hardware), node)
    use = selection.apply([fault] if fault else [], Parts(Inventory(node, here.devices, tuple(network)), data=Path()))
    wanted = use.alter_slices(slices.for_node(DRIVER, slices.Owner(node, NODES[node]), here.devices))
    return list(plan([*wanted, *slices.for_network(DRIVER, network)], [], {}).create)


def _slices(*pairs: tuple[int, int]) -> Sequence[Any]:
    pools_ = [{"name": "p", "generation": generation, "resourceSliceCount": count} for generation, count in pairs]
    return [{"metadata": {"name": f"s-{number}"}, "spec": {"pool": each}} for number, each in enumerate(pools_)]


@pytest.mark.parametrize("hardware", HARDWARE, ids=lambda path: path.stem)
def test_the_fake_driver_publishes_correct_slices(hardware: Path) -> None:
    made = _published("node-1", hardware=hardware)
    assert made
    assert slice_checks.ownerless(made, NODES) == slice_checks.contradictions(made) == ()


def test_a_slice_without_an_owner_is_found() -> None:
    made = _published("node-1", "slices-without-owner")
    assert slice_checks.ownerless(made, NODES) == tuple(f"{each['metadata']['name']} of node node-1" for each in made)


def test_a_slice_that_is_owned_by_another_object_is_found() -> None:
    (first, *_) = _published("node-1")
    assert slice_checks.ownerless([first], {"node-1": "uid-of-the-next-node"})
    assert slice_checks.ownerless([first], {"node-2": "uid-1"})
    first["metadata"]["ownerReferences"][0]["kind"] = "Pod"
    assert slice_checks.ownerless([first], NODES)


def test_a_slice_of_the_network_needs_no_owner() -> None:
    assert slice_checks.ownerless([{"metadata": {"name": "s"}, "spec": {"allNodes": True}}], NODES) == ()


def test_slices_with_different_counts_are_found_in_a_pool_that_seems_complete() -> None:
    made = _published("node-1", "slices-count-differently", folders.data("manifests") / "hardware/server.yaml")
    counts = [each["spec"]["pool"]["resourceSliceCount"] for each in made]
    assert counts[0] == len(made) > 1
    (found,) = slice_checks.contradictions(made)
    assert found.startswith(f"pool node-1: a slice with generation 1 and resourceSliceCount {len(made)}, ")


def test_slices_of_several_generations_are_found() -> None:
    (found,) = slice_checks.contradictions(_slices((1, 2), (2, 2)))
    assert found == (
        "pool p: a slice with generation 1 and resourceSliceCount 2, a slice with generation 2 and resourceSliceCount 2"
    )
    assert slice_checks.contradictions(_slices((2, 2), (2, 2))) == ()


def _content(*names: str, generation: int = 1, **more: Any) -> slice_checks.PoolContent:
    return {"p": (generation, tuple({"name": name, **more} for name in names))}


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (_content("a", "b"), []),
        (_content("b", "a"), ["the order of devices in pool p was a, b, and is b, a"]),
        (_content("a", "b", generation=2), ["the generation of pool p was 1, and is 2"]),
        (_content("a"), ["devices of pool p differ: b"]),
        (_content("a", "b", taints=[]), ["devices of pool p differ: a, b"]),
        ({}, ["pool p is gone"]),
    ],
)
def test_pools_that_were_published_again_are_described(now: Any, found: list[str]) -> None:
    assert slice_checks.changes(_content("a", "b"), now) == found


def test_the_content_of_a_pool_does_not_depend_on_the_names_of_its_slices() -> None:
    made = pools(_published("node-1"), DRIVER)
    reversed_ = [replace(each, slices=tuple(reversed(each.slices))) for each in made]
    assert slice_checks.pool_content(made) == slice_checks.pool_content(reversed_)

import pytest

from fake_driver.devices.model import Device, Pool
from fake_driver.errors import ClaimRefused
from fake_driver.preparing.inventory import Inventory

GPU = Device("gpu-0", "gpu", {}, {})


def test_a_device_of_this_node_is_found() -> None:
    assert Inventory("worker", (GPU,)).find("worker", "gpu-0") is GPU


@pytest.mark.parametrize(
    ("pool", "name", "text"),
    [("other", "gpu-0", "belongs to pool other"), ("worker", "gpu-9", "is not in pool worker")],
)
def test_a_device_of_another_node_or_an_unplugged_one_is_refused(pool: str, name: str, text: str) -> None:
    with pytest.raises(ClaimRefused, match=text):
        Inventory("worker", (GPU,)).find(pool, name)


def test_network_pools_are_known_beside_the_nodes_own_pool() -> None:
    near, far = Device("gpu-0", "gpu", {}, {}), Device("far-0", "far", {}, {})
    inventory = Inventory("worker", (near,), [Pool("rack/1", (far, near))])
    assert inventory.find("rack/1", "far-0") is far
    assert list(inventory.with_pools()) == [("worker", near), ("rack/1", far), ("rack/1", near)]
    with pytest.raises(ClaimRefused, match="this node only has pool worker, rack/1"):
        inventory.find("other", "gpu-0")

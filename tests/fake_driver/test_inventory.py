import pytest

from fake_driver.errors import ClaimRefused
from fake_driver.hardware.model import Device
from fake_driver.inventory import Inventory

GPU = Device("gpu-0", "gpu", {}, {})


def test_a_device_of_this_node_is_found() -> None:
    assert Inventory("worker", (GPU,)).find("worker", "gpu-0") is GPU


@pytest.mark.parametrize(
    ("pool", "name", "text"),
    [("other", "gpu-0", "belongs to pool other"), ("worker", "gpu-9", "is not in pool worker")],
)
def test_a_device_of_another_node_or_one_that_is_gone_is_refused(pool: str, name: str, text: str) -> None:
    with pytest.raises(ClaimRefused, match=text):
        Inventory("worker", (GPU,)).find(pool, name)

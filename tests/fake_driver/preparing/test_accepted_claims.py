"""Drivers that do not accept every claim: only all devices of a node, or only devices with configuration."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fake_driver.devices.model import Device
from fake_driver.errors import ConfigurationError
from fake_driver.preparing.accepted_claims import RULES, rules
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim
from fake_driver.preparing.inventory import Inventory

NODE = "node-1"


def _device(name: str, **attributes: str) -> Device:
    return Device(name, "gpu", attributes, {})


INVENTORY = Inventory(NODE, (_device("gpu-0"), _device("gpu-1"), _device("mig-0", purpose="partitions")), ())


def _claim(*names: str, facts: Mapping[str, str] | None = None, admin_access: bool = False) -> PreparedClaim:
    devices = (AllocatedDevice("gpu", NODE, name, admin_access, facts=facts or {}) for name in names)
    return PreparedClaim(ClaimRef("uid"), tuple(devices))


@pytest.mark.parametrize(
    "claim", [_claim("gpu-0", "gpu-1"), _claim("mig-0"), _claim("gpu-0", admin_access=True), _claim()]
)
def test_all_devices_of_a_node_and_special_ones_are_accepted(claim: PreparedClaim) -> None:
    assert RULES["whole-node"](claim, INVENTORY) == ""


def test_a_part_of_a_node_is_not_accepted() -> None:
    assert "lacks gpu-1: use allocationMode: All" in RULES["whole-node"](_claim("gpu-0"), INVENTORY)


def test_each_device_must_have_configuration() -> None:
    assert RULES["configured"](_claim("gpu-0", facts={"SHARING_INTERVAL": "Short"}), INVENTORY) == ""
    assert "but gpu-0, gpu-1 has none" in RULES["configured"](_claim("gpu-0", "gpu-1"), INVENTORY)


def test_an_unknown_limit_is_refused() -> None:
    assert rules(["configured"]) == (RULES["configured"],)
    with pytest.raises(ConfigurationError, match="unknown limit 'whole-nodes'; did you mean whole-node"):
        rules(["whole-nodes"])

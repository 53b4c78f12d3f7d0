"""Limits of the claims that the driver accepts, for drivers that do not accept every claim. Pure. The settings choose them by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fake_driver.errors import ConfigurationError, suggestion
from fake_driver.preparing.claims import AllocatedDevice, PreparedClaim
from fake_driver.preparing.inventory import Inventory

# Return why a claim is not accepted; '' if it is.
Rule = Callable[[PreparedClaim, Inventory], str]


def whole_node(claim: PreparedClaim, inventory: Inventory) -> str:
    """Accept only all ordinary devices of the node together."""
    wanted = {device.device for device in _ordinary(claim, inventory)}
    missing = sorted({each.name for each in inventory.devices if "purpose" not in each.attributes} - wanted)
    if not wanted or not missing:
        return ""
    return f"a claim must have all devices of the node, but lacks {', '.join(missing)}: use allocationMode: All"


def configured(claim: PreparedClaim, inventory: Inventory) -> str:
    """Accept only devices with configuration."""
    plain = sorted(device.device for device in _ordinary(claim, inventory) if not device.facts)
    return f"each device must have configuration, but {', '.join(plain)} has none" if plain else ""


RULES: dict[str, Rule] = {"whole-node": whole_node, "configured": configured}


def rules(names: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules of these names. Raise ConfigurationError for an unknown name."""
    for name in names:
        if name not in RULES:
            raise ConfigurationError(f"--accepts: unknown limit {name!r}; {suggestion(name, RULES)}")
    return tuple(RULES[name] for name in names)


def _ordinary(claim: PreparedClaim, inventory: Inventory) -> list[AllocatedDevice]:
    """Return the devices of the claim to which limits apply: not those with a purpose of their own, and not those with admin access."""
    return [
        device
        for device in claim.devices
        if not device.admin_access
        and device.pool == inventory.pool
        and "purpose" not in inventory.find(device.pool, device.device).attributes
    ]

"""Drivers that do not do what class and claim say of the devices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fake_driver.errors import ClaimRefused
from fake_driver.preparing import opaque_configuration
from fake_driver.preparing.claims import ClaimRef, Object
from fake_driver.preparing.driver import Collaborators, Driver
from fake_driver.preparing.opaque_configuration import OpaqueConfig
from fake_driver.roles.node_driver import Parts


def ignores_config_order(right: Parts) -> Parts:
    """What the class says wins over what the claim says, and of two the first."""
    return replace(right, config_order=lambda found: [*reversed(right.config_order(found))])


def ignores_config_scope(right: Parts) -> Parts:
    """What is said of one request is done to all of them."""
    return replace(right, config_order=lambda found: [replace(one, requests=()) for one in right.config_order(found)])


def ignores_class_config(right: Parts) -> Parts:
    """Only what users say counts; what the admin put into the class is forgotten."""
    return replace(right, config_order=lambda found: [one for one in right.config_order(found) if not one.from_class])


def ignores_claim_config(right: Parts) -> Parts:
    """Only what the admin put into the class counts; what users say is forgotten."""
    return replace(right, config_order=lambda found: [one for one in right.config_order(found) if one.from_class])


def ignores_config_of_subrequests(right: Parts) -> Parts:
    """What is said of one alternative alone is not heard."""

    def config_order(found: Sequence[OpaqueConfig]) -> Sequence[OpaqueConfig]:
        return right.config_order([one for one in found if not any("/" in request for request in one.requests)])

    return replace(right, config_order=config_order)


class TakesConfigOfOthers(Driver):
    """Configuration for any driver is taken for its own."""

    def __init__(self, name: str, use: Collaborators, *parts: Any) -> None:
        def read(ref: ClaimRef, patience: float) -> Object:
            claim = json.loads(json.dumps(use.read_claim(ref, patience)))
            devices = claim.get("status", {}).get("allocation", {}).get("devices", {})
            devices["config"] = self._taken(devices.get("config") or [], claim, ref)
            return dict(claim)

        super().__init__(name, replace(use, read_claim=read), *parts)

    def _taken(self, entries: list[Any], _claim: Object, _ref: ClaimRef) -> list[Any]:
        return [{**each, "opaque": {**each["opaque"], "driver": self.name}} for each in entries]


class SwallowsConfigErrors(TakesConfigOfOthers):
    """Configuration that is not valid is left out, and nobody learns of it."""

    def _taken(self, entries: list[Any], claim: Object, ref: ClaimRef) -> list[Any]:
        try:
            opaque_configuration.read_configs(claim, ref, self.name)
        except ClaimRefused:
            return []
        return entries


ALL = (
    ignores_config_order,
    ignores_config_scope,
    ignores_class_config,
    ignores_claim_config,
    ignores_config_of_subrequests,
    TakesConfigOfOthers,
    SwallowsConfigErrors,
)

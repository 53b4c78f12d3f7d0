"""Drivers that do not do what class and claim say of the devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fake_driver.errors import ClaimRefused
from fake_driver.mutants.claims import MisreadClaims, alter_allocation
from fake_driver.preparing import opaque_configuration
from fake_driver.preparing.claims import ClaimRef, Object
from fake_driver.preparing.opaque_configuration import OpaqueConfig
from fake_driver.roles.node_driver import Parts


def ignores_config_order(parts: Parts) -> Parts:
    """What the class says wins over what the claim says, and of two the first."""
    return replace(parts, config_order=lambda found: [*reversed(parts.config_order(found))])


def ignores_config_scope(parts: Parts) -> Parts:
    """What is said of one request is done to all of them."""
    return replace(parts, config_order=lambda found: [replace(one, requests=()) for one in parts.config_order(found)])


def ignores_class_config(parts: Parts) -> Parts:
    """Only what users say counts; what the admin put into the class is forgotten."""
    return replace(parts, config_order=lambda found: [one for one in parts.config_order(found) if not one.from_class])


def ignores_claim_config(parts: Parts) -> Parts:
    """Only what the admin put into the class counts; what users say is forgotten."""
    return replace(parts, config_order=lambda found: [one for one in parts.config_order(found) if one.from_class])


def ignores_config_of_subrequests(parts: Parts) -> Parts:
    """What is said of one alternative alone is not heard."""

    def config_order(found: Sequence[OpaqueConfig]) -> Sequence[OpaqueConfig]:
        return parts.config_order([one for one in found if not any("/" in request for request in one.requests)])

    return replace(parts, config_order=config_order)


class TakesConfigOfOthers(MisreadClaims):
    """Configuration for any driver is taken for its own."""

    def _alter(self, claim: Object, _ref: ClaimRef) -> Object:
        return alter_allocation(claim, "config", self._with_own_name)

    def _with_own_name(self, configs: Sequence[Object]) -> Sequence[Object]:
        return [{**each, "opaque": {**each["opaque"], "driver": self.name}} for each in configs]


class SwallowsConfigErrors(MisreadClaims):
    """Configuration that is not valid is left out, and nobody learns of it."""

    def _alter(self, claim: Object, ref: ClaimRef) -> Object:
        try:
            opaque_configuration.read_configs(claim, ref, self.name)
        except ClaimRefused:
            return alter_allocation(claim, "config", lambda _configs: [])
        return claim


ALL = (
    ignores_config_order,
    ignores_config_scope,
    ignores_class_config,
    ignores_claim_config,
    ignores_config_of_subrequests,
    TakesConfigOfOthers,
    SwallowsConfigErrors,
)

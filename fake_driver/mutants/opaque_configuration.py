"""Drivers that do not apply the opaque configuration of classes and claims, or apply it wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fake_driver.errors import ClaimRefused
from fake_driver.mutants.claims import MisreadClaims, alter_allocation
from fake_driver.preparing import opaque_configuration
from fake_driver.preparing.caller import PATIENT, Caller
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, Object
from fake_driver.preparing.driver import Driver, PreparedDevice
from fake_driver.preparing.opaque_configuration import OpaqueConfig
from fake_driver.roles.node_driver import Parts


def ignores_config_order(parts: Parts) -> Parts:
    """Configuration of the class overrides that of the claim, and an earlier entry a later one."""
    return replace(parts, config_order=lambda found: [*reversed(parts.config_order(found))])


def ignores_config_scope(parts: Parts) -> Parts:
    """Configuration for one request is applied to all requests."""
    return replace(parts, config_order=lambda found: [replace(one, requests=()) for one in parts.config_order(found)])


def ignores_class_config(parts: Parts) -> Parts:
    """Configuration of the class is ignored."""
    return replace(parts, config_order=lambda found: [one for one in parts.config_order(found) if not one.from_class])


def ignores_claim_config(parts: Parts) -> Parts:
    """Configuration of the claim is ignored."""
    return replace(parts, config_order=lambda found: [one for one in parts.config_order(found) if one.from_class])


def ignores_config_of_subrequests(parts: Parts) -> Parts:
    """Configuration for a single subrequest is ignored."""

    def config_order(found: Sequence[OpaqueConfig]) -> Sequence[OpaqueConfig]:
        return parts.config_order([one for one in found if not any("/" in request for request in one.requests)])

    return replace(parts, config_order=config_order)


class IgnoresConfigOfAlternatives(MisreadClaims):
    """Configuration for a request with alternatives is ignored, because the allocation names the chosen alternative."""

    def _alter(self, claim: Object, _ref: ClaimRef) -> Object:
        return alter_allocation(
            claim, "config", lambda found: [each for each in found if not self._is_of_alternatives(each, claim)]
        )

    def _is_of_alternatives(self, config: Object, claim: Object) -> bool:
        results = claim["status"]["allocation"]["devices"]["results"]
        chosen = {each["request"].partition("/")[0] for each in results if "/" in each["request"]}
        return any(request.partition("/")[0] in chosen for request in config.get("requests", ()))


class ConfigurationOutlivesItsClaim(Driver):
    """A device keeps the configuration of an earlier claim if the next one has none."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._kept: dict[tuple[str, str], Sequence[OpaqueConfig]] = {}

    def _configure(self, allocated: AllocatedDevice, configs: Sequence[OpaqueConfig]) -> AllocatedDevice:
        device = allocated.pool, allocated.device
        if configs:
            self._kept[device] = configs
        return super()._configure(allocated, configs or self._kept.get(device, ()))


class TakesConfigOfOthers(MisreadClaims):
    """Configuration for other drivers is applied as well."""

    def _alter(self, claim: Object, _ref: ClaimRef) -> Object:
        return alter_allocation(claim, "config", self._with_own_name)

    def _with_own_name(self, configs: Sequence[Object]) -> Sequence[Object]:
        return [{**each, "opaque": {**each["opaque"], "driver": self.name}} for each in configs]


class SwallowsConfigErrors(MisreadClaims):
    """Invalid configuration is ignored without an error."""

    def _alter(self, claim: Object, ref: ClaimRef) -> Object:
        try:
            opaque_configuration.read_configs(claim, ref, self.name)
        except ClaimRefused:
            return alter_allocation(claim, "config", lambda _configs: [])
        return claim


class HidesTheInvalidField(Driver):
    """Invalid configuration is refused, but the error does not name the invalid field."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Replace the error for invalid configuration."""
        try:
            return super().prepare(ref, caller)
        except ClaimRefused as refused:
            if "invalid configuration" not in str(refused):
                raise
            raise ClaimRefused(f"claim {ref} cannot be prepared: mutant hides-the-invalid-field") from refused


ALL = (
    ignores_config_order,
    ignores_config_scope,
    ignores_class_config,
    ignores_claim_config,
    ignores_config_of_subrequests,
    IgnoresConfigOfAlternatives,
    ConfigurationOutlivesItsClaim,
    TakesConfigOfOthers,
    SwallowsConfigErrors,
    HidesTheInvalidField,
)

"""The kinds of objects that a testbed may have created in an existing cluster, so that `down` overlooks none that it cannot list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.drivers import all_manifests, load_with_companions
from testbed.errors import TestbedError
from testbed.kube.client import Resource, group_of
from testbed.models.config import TestbedConfig, config_from_record
from testbed.providers.base import ClusterFinder

_ANY_IMAGE = "any"  # the image does not change the kinds


@dataclass(frozen=True)
class CreatedKinds:
    """Group and plural of what the --allow level permits to create; group and kind of the driver's manifests, None if unreadable."""

    by_level: frozenset[tuple[str, str]]
    by_driver: frozenset[tuple[str, str]] | None = frozenset()

    def include(self, resource: Resource) -> bool:
        """Return True if the testbed may have created objects of that resource."""
        installed = self.by_driver is None or (resource.group, resource.kind) in self.by_driver
        return installed or (resource.group, resource.plural) in self.by_level

    def include_group(self, api_version: str) -> bool:
        """Return True if the testbed may have created objects of that API group."""
        groups = {group for group, _ in (*self.by_level, *(self.by_driver or ()))}
        return self.by_driver is None or group_of(api_version) in groups


def created_kinds(provider: ClusterFinder, record: Mapping[str, Any]) -> CreatedKinds:
    """Return what a testbed with the recorded configuration may have created."""
    try:
        config = config_from_record(record)
    except ValueError:  # written by another version of dra-testbed
        return CreatedKinds(frozenset(), None)
    permissions = provider.required_permissions(config.provider_options)
    created, listed = (
        {(each.group, each.resource) for each in permissions if each.verb == verb} for verb in ("create", "list")
    )
    return CreatedKinds(frozenset(created & listed), _installed(config))


def _installed(config: TestbedConfig) -> frozenset[tuple[str, str]] | None:
    try:
        objects = all_manifests(load_with_companions(config.driver), image=_ANY_IMAGE) if config.driver else []
    except TestbedError:  # the driver file has been deleted or changed since: it may have created anything
        return None
    return frozenset((group_of(each["apiVersion"]), each["kind"]) for each in objects)

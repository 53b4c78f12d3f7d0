"""Which kinds of objects a testbed may have made in a cluster of somebody else, so that `down` forgets none that it could not see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.drivers import load_together, manifests_together
from testbed.errors import TestbedError
from testbed.kube.client import Resource, group_of
from testbed.models.config import TestbedConfig, config_from_record
from testbed.providers.base import ClusterSpec, FindsClusters

_ANY_IMAGE = "any"  # it changes no kind


@dataclass(frozen=True)
class Making:
    """Group and plural of what its level lets it make and list; group and kind of its driver's manifests, None if unreadable."""

    listed: frozenset[tuple[str, str]]
    installed: frozenset[tuple[str, str]] | None = frozenset()

    def may_hold(self, resource: Resource) -> bool:
        """Whether there may be objects of the testbed among those of that kind."""
        by_driver = self.installed is None or (resource.group, resource.kind) in self.installed
        return by_driver or (resource.group, resource.plural) in self.listed

    def may_be_in(self, api_version: str) -> bool:
        """Whether there may be objects of the testbed in that group."""
        groups = {group for group, _ in (*self.listed, *(self.installed or ()))}
        return self.installed is None or group_of(api_version) in groups


def making(provider: FindsClusters, record: Mapping[str, Any]) -> Making:
    """What a testbed with that configuration, as its record has it, may have made."""
    try:
        config = config_from_record(record)
    except ValueError:  # written by another version of us
        return Making(frozenset(), None)
    rights = provider.needs(ClusterSpec(config.kubernetes, options=getattr(config, config.provider, None)))
    made, seen = (
        {(right.group, right.resource) for right in rights if right.verb == verb} for verb in ("create", "list")
    )
    return Making(frozenset(made & seen), _installed(config))


def _installed(config: TestbedConfig) -> frozenset[tuple[str, str]] | None:
    try:
        objects = manifests_together(load_together(config.driver), image=_ANY_IMAGE) if config.driver else []
    except TestbedError:  # the file has gone or changed since: then it may have been anything
        return None
    return frozenset((group_of(each["apiVersion"]), each["kind"]) for each in objects)

"""What `up` and `run` would do, without changing anything. Called by `--plan`, and by `run` before it begins."""

from __future__ import annotations

from testbed.bringup.resolved_config import resolve
from testbed.bringup.steps import Plan, procedure_of
from testbed.models.config import TestbedConfig
from testbed.providers.base import FoundCluster

__all__ = ["Plan", "check", "plan"]


def check(config: TestbedConfig) -> None:
    """Raise UsageError for what is wrong in the configuration itself, whatever the host and the cluster."""
    procedure_of(config.provider)
    resolve(config)


def plan(config: TestbedConfig) -> tuple[Plan, FoundCluster | None]:
    """Return the plan, and the cluster if it exists already. Raise what `up` would raise without touching this host."""
    return procedure_of(config.provider).plan(resolve(config))

"""Which steps `up` has for the clusters of each provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.bringup.steps import ExpectedCluster, procedure_of
from testbed.errors import UsageError
from testbed.models.config import TestbedConfig
from testbed.providers import PROVIDERS

ARCHITECTURE = Path(__file__).parents[2] / "docs/architecture.md"


def _steps(provider: str) -> list[str]:
    steps: Any = procedure_of(provider).steps
    return [step.__name__ for step in steps]


def test_an_existing_cluster_is_connected_to_and_others_are_created() -> None:
    assert _steps("existing") == ["connect", "install_driver"]
    assert _steps("local") == _steps("kind")
    assert "create_cluster" in _steps("local")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_architecture_page_lists_the_steps_in_order(provider: str) -> None:
    assert ", ".join(f"`{step}`" for step in _steps(provider)) in ARCHITECTURE.read_text()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_only_clusters_that_are_made_have_the_version_and_nodes_of_the_configuration(provider: str) -> None:
    config = TestbedConfig(provider=provider, kubernetes="1.36.2", nodes=3)
    expected = ExpectedCluster() if provider == "existing" else ExpectedCluster("1.36.2", 3)

    assert procedure_of(provider).expected_cluster(config) == expected


def test_an_unknown_provider_has_no_procedure() -> None:
    with pytest.raises(UsageError, match="there is no provider cloud"):
        procedure_of("cloud")

"""Test pods pull their images with a copy of the driver's pull secret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.redaction import redactor
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World
from tests.fakes.driver_files import with_values

VALUE = "c2VjcmV0LXZhbHVlLW9mLXRoaXMtdGVzdA=="


@pytest.fixture
def secretive(world: Callable[..., World]) -> World:
    """Return a world whose driver file names the pull secret regcred."""
    here = world()
    return replace(here, driver_file=with_values(here.driver_file, "install", pull_secret="regcred"))


def test_a_scenario_has_a_copy_of_the_pull_secret_that_its_pods_use(secretive: World) -> None:
    kube: Any = secretive.kube
    namespace = secretive.driver_file.pods.namespace
    kube.put("Secret", "regcred", namespace, type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": VALUE})

    with new_scenario(secretive, "CLAIM-001") as scenario:
        copied = kube.objects["Secret", scenario.namespace, "regcred"]
        account = kube.objects["ServiceAccount", scenario.namespace, "default"]

        assert (copied["type"], copied["data"]) == ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": VALUE})
        assert account["imagePullSecrets"] == [{"name": "regcred"}]
    assert ("Secret", scenario.namespace, "regcred") not in kube.objects
    assert VALUE not in redactor.redact(f"the value is {VALUE}")


def test_a_missing_pull_secret_is_named(secretive: World) -> None:
    with (
        pytest.raises(UsageError, match=r"spec\.install\.pullSecret: there is no Secret regcred in namespace"),
        new_scenario(secretive, "CLAIM-001"),
    ):
        pass


def test_without_a_pull_secret_the_account_names_none(world: Callable[..., World]) -> None:
    here = world()
    kube: Any = here.kube

    with new_scenario(here, "CLAIM-001") as scenario:
        assert "imagePullSecrets" not in kube.objects["ServiceAccount", scenario.namespace, "default"]

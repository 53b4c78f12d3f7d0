"""The driver uses every permission that the manifests grant. The fixture `fake_api` checks that it uses no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fake_driver.roles.network_driver import NetworkDriverProcess
from fake_driver.roles.node_driver import NodeProcess
from fake_driver.settings import Settings
from tests.fake_driver.granted_permissions import granted

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi

FABRIC = Path(__file__).parents[3] / "manifests" / "hardware" / "fabric.yaml"
# The API server checks these additionally when a status is written; no request has these names.
SYNTHETIC = {("resourceclaims/driver", "associated-node:patch"), ("resourceclaims/driver", "arbitrary-node:patch")}
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def stale_slice(name: str, driver: str, **node_selection: Any) -> dict[str, Any]:
    """Return a slice of an earlier version of the driver, which must be deleted."""
    spec = {"driver": driver, "pool": {"name": "old", "generation": 1, "resourceSliceCount": 1}, **node_selection}
    return {"metadata": {"name": name}, "spec": spec}


def edit_slices(fake_api: FakeApi) -> None:
    """Edit all slices as another client, so that they must be written again."""
    for name in tuple(fake_api.slices):
        fake_api.edit(name, lambda each: each["spec"].pop("devices"))


def used(fake_api: FakeApi) -> set[tuple[str, str]]:
    return fake_api.requested - {("", "get")}


def test_the_node_driver_uses_exactly_its_permissions(
    start_driver: Callable[..., NodeProcess], settings: Settings, fake_api: FakeApi, kubelet: Kubelet
) -> None:
    fake_api.respond("POST", SLICES, stale_slice("old", settings.driver, nodeName="worker"))
    process = start_driver(settings)
    fake_api.wait_until(lambda: "old" not in fake_api.slices and bool(fake_api.slices))
    assert process._publisher.published.wait(5)
    kubelet.prepare(settings.data / "dra.sock", fake_api.claim())
    fake_api.wait_until(lambda: bool(fake_api.applied))
    edit_slices(fake_api)
    fake_api.wait_until(lambda: ("resourceslices", "update") in fake_api.requested)
    assert used(fake_api) == granted("node") - SYNTHETIC


def test_the_network_driver_uses_exactly_its_permissions(settings: Settings, fake_api: FakeApi) -> None:
    fake_api.respond("POST", SLICES, stale_slice("old", settings.driver, allNodes=True))
    network_settings = replace(settings, node="", role="network", hardware=str(FABRIC))
    process = NetworkDriverProcess(network_settings)
    process.start()
    try:
        fake_api.wait_until(lambda: "old" not in fake_api.slices and bool(fake_api.slices))
        assert process._publisher.published.wait(5)
        conditions: dict[str, Any] = {
            "bindingConditions": ["dra-testbed.example/attached"],
            "bindingFailureConditions": ["dra-testbed.example/attaching-failed"],
        }
        fake_api.claim("one", ("accelerator-0",), pool="accelerator-box", **conditions)
        fake_api.wait_until(lambda: bool(fake_api.applied))
        edit_slices(fake_api)
        fake_api.wait_until(lambda: ("resourceslices", "update") in fake_api.requested)
    finally:
        process.stop()
    assert used(fake_api) == granted("network") - SYNTHETIC

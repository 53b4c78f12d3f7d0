from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import PartsWith, StartMutant


def test_forget_registration_socket(mutant: StartMutant, fake_api: FakeApi) -> None:
    driver = mutant("forget-registration-socket")
    fake_api.wait_until(lambda: bool(fake_api.slices))
    assert list(Path(driver.settings.registry).iterdir()) == []
    assert "the kubelet has not registered this driver" in driver.process.not_ready_reasons()


@pytest.mark.parametrize(("name", "registers"), [("node-1", True), ("node-2", False), ("worker", False)])
def test_register_on_odd_nodes(parts_with: PartsWith, name: str, registers: bool) -> None:
    assert parts_with("register-on-odd-nodes", node=name).registers is registers


def test_taints_nodes_on_which_it_fails(mutant: StartMutant, fake_api: FakeApi) -> None:
    driver = mutant("taints-nodes-on-which-it-fails", node="worker-2")
    ((manager, node),) = fake_api.applied
    fake_api.requested.remove(("nodes", "patch"))  # which the manifests allow only this mutant
    assert (manager, node["metadata"]["name"]) == (driver.settings.driver, "worker-2")
    assert node["spec"]["taints"] == [{"key": f"{driver.settings.driver}/failed", "effect": "NoSchedule"}]
    assert list(Path(driver.settings.registry).iterdir()) == []
    assert (fake_api.slices, driver.process.not_alive_reasons()) == ({}, [])


def test_nodes_with_an_odd_number_have_a_correct_driver(mutant: StartMutant, fake_api: FakeApi) -> None:
    driver = mutant("taints-nodes-on-which-it-fails", node="worker-1")
    fake_api.wait_until(lambda: bool(fake_api.slices))
    assert driver.register()
    assert fake_api.applied == []


def test_a_correct_driver_registers_again(mutant: StartMutant) -> None:
    driver = mutant("")
    assert driver.register() == driver.register()


def test_registers_once(mutant: StartMutant) -> None:
    driver = mutant("registers-once")
    driver.register()
    with pytest.raises(grpc.RpcError, match="registers-once"):
        driver.register()


@pytest.mark.parametrize(("name", "second"), [("", True), ("leaves-its-lock-behind", False)])
def test_leaves_its_lock_behind(parts_with: PartsWith, name: str, second: bool) -> None:
    assert [parts_with(name).registers for _ in range(2)] == [True, second]

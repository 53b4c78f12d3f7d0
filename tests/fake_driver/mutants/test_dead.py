from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from testbed.kubelet.stubs import dra_v1_pb2

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import PartsWith, StartMutant


@pytest.mark.parametrize(("name", "publishes"), [("", True), ("registers-only", False)])
def test_registers_only_publishes_nothing(parts_with: PartsWith, name: str, publishes: bool) -> None:
    parts = parts_with(name)
    assert (parts.registers, parts.publishes, parts.writes_status) == (True, publishes, publishes)


def test_registers_only_answers_unprepare_but_never_prepare(
    mutant: StartMutant, fake_api: FakeApi, kubelet: Kubelet
) -> None:
    driver, claim = mutant("registers-only"), fake_api.claim()
    request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[dra_v1_pb2.Claim(**claim)])
    with pytest.raises(grpc.RpcError) as unanswered:
        kubelet.dra(driver.settings.data / "dra.sock").NodePrepareResources(request, timeout=0.3, wait_for_ready=True)
    assert unanswered.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert driver.unprepare(claim) == ""


@pytest.mark.parametrize(
    ("name", "is_refused", "devices", "files"),
    [("", False, 1, 1), ("refuses-everything", True, 0, 0), ("only-answers", False, 0, 0)],
)
def test_drivers_that_do_nothing_publish_and_answer(
    mutant: StartMutant, fake_api: FakeApi, name: str, is_refused: bool, devices: int, files: int
) -> None:
    driver, claim = mutant(name), fake_api.claim()
    fake_api.wait_until(lambda: bool(fake_api.slices))
    answer = driver.prepare(claim)
    assert (bool(answer.error), len(answer.devices), len(driver.cdi_files)) == (is_refused, devices, files)
    assert driver.unprepare(claim) == ""

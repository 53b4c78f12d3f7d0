"""What the bench reads out of a driver's answers."""

import pytest

from testbed.bench.kubelet import Claim, _ids
from testbed.errors import DriverFailed
from testbed.kubelet.stubs import dra_v1_pb2

CLAIM = Claim("default", "one", "u-1")


def answer(**entry: object) -> dra_v1_pb2.NodePrepareResourcesResponse:
    return dra_v1_pb2.NodePrepareResourcesResponse(claims={"u-1": dra_v1_pb2.NodePrepareResourceResponse(**entry)})  # type: ignore[arg-type]  # any field


def test_the_ids_of_all_devices_count() -> None:
    devices = [dra_v1_pb2.Device(cdi_device_ids=names) for names in (["a/b=1", "a/b=2"], ["a/b=3"])]

    assert _ids(answer(devices=devices), CLAIM) == ("a/b=1", "a/b=2", "a/b=3")


def test_an_error_of_the_claim_is_the_drivers_failure() -> None:
    with pytest.raises(DriverFailed, match="claim one: no such device"):
        _ids(answer(error="no such device"), CLAIM)


def test_an_answer_about_another_claim_is_the_drivers_failure() -> None:
    with pytest.raises(DriverFailed, match="no entry"):
        _ids(answer(), Claim("default", "two", "u-2"))


def test_unprepare_has_an_entry_and_no_devices() -> None:
    done = dra_v1_pb2.NodeUnprepareResourcesResponse(claims={"u-1": dra_v1_pb2.NodeUnprepareResourceResponse()})

    assert _ids(done, CLAIM) == ()

"""Registration and calls of a driver, and what is read from its answers."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from testbed.bench.kubelet import ClaimRef, KubeletClient, _ids
from testbed.errors import DriverFailed
from testbed.kubelet.stubs import dra_v1_pb2, registration_v1_pb2, registration_v1_pb2_grpc

CLAIM = ClaimRef("default", "one", "u-1")


def answer(**entry: object) -> dra_v1_pb2.NodePrepareResourcesResponse:
    return dra_v1_pb2.NodePrepareResourcesResponse(claims={"u-1": dra_v1_pb2.NodePrepareResourceResponse(**entry)})  # type: ignore[arg-type]  # any field


def test_the_cdi_ids_of_all_devices_are_returned() -> None:
    devices = [dra_v1_pb2.Device(cdi_device_ids=names) for names in (["a/b=1", "a/b=2"], ["a/b=3"])]

    assert _ids(answer(devices=devices), CLAIM) == ("a/b=1", "a/b=2", "a/b=3")


def test_an_error_for_the_claim_is_a_failure_of_the_driver() -> None:
    with pytest.raises(DriverFailed, match="error for claim one: no such device"):
        _ids(answer(error="no such device"), CLAIM)


def test_an_answer_without_the_claim_is_a_failure_of_the_driver() -> None:
    with pytest.raises(DriverFailed, match="no entry for claim two"):
        _ids(answer(), ClaimRef("default", "two", "u-2"))


def test_an_answer_to_unprepare_has_no_cdi_ids() -> None:
    done = dra_v1_pb2.NodeUnprepareResourcesResponse(claims={"u-1": dra_v1_pb2.NodeUnprepareResourceResponse()})

    assert _ids(done, CLAIM) == ()


class Registration(registration_v1_pb2_grpc.RegistrationServicer):
    """The registration service of a driver whose DRA socket is `endpoint`."""

    def __init__(self, endpoint: Path) -> None:
        self.endpoint = str(endpoint)

    def GetInfo(self, request, context):  # type: ignore[no-untyped-def]  # noqa: N802 - the name in the protocol
        return registration_v1_pb2.PluginInfo(endpoint=self.endpoint, supported_versions=["v1.DRAPlugin"])

    def NotifyRegistrationStatus(self, request, context):  # type: ignore[no-untyped-def]  # noqa: N802 - the name in the protocol
        return registration_v1_pb2.RegistrationStatusResponse()


@contextlib.contextmanager
def served(socket: Path, *servicers: Registration) -> Iterator[Path]:
    """Serve a driver's registration socket; without a servicer every call is unimplemented."""
    server = grpc.server(ThreadPoolExecutor(2))
    for each in servicers:
        registration_v1_pb2_grpc.add_RegistrationServicer_to_server(each, server)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    try:
        yield socket
    finally:
        server.stop(None).wait()


def test_an_unimplemented_registration_is_a_failure_of_the_driver(tmp_path: Path) -> None:
    with served(tmp_path / "r") as socket, pytest.raises(DriverFailed, match="did not register: UNIMPLEMENTED"):
        KubeletClient(socket)


def test_an_unreachable_socket_is_a_failure_of_the_driver(tmp_path: Path) -> None:
    with served(tmp_path / "r", Registration(tmp_path / "gone")) as socket, KubeletClient(socket) as kubelet:
        with pytest.raises(DriverFailed, match="did not prepare claim one: UNAVAILABLE"):
            kubelet.prepare([CLAIM], 1)
        with pytest.raises(DriverFailed, match="did not unprepare claim one: UNAVAILABLE"):
            kubelet.unprepare([CLAIM], 1)

"""A gRPC client that registers a driver and calls it as the kubelet does, and measures the time of each call. Used by driver.py."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

from testbed.errors import DriverFailed
from testbed.kubelet.stubs import dra_v1_pb2, dra_v1_pb2_grpc, registration_v1_pb2, registration_v1_pb2_grpc

_RPC_TIMEOUT = 45.0  # seconds, the same as in the kubelet
_SERVICE = "v1.DRAPlugin"


@dataclass(frozen=True)
class ClaimRef:
    """A reference to a claim, as in the kubelet's requests."""

    namespace: str
    name: str
    uid: str

    def message(self) -> dra_v1_pb2.Claim:
        """Return the protobuf message."""
        return dra_v1_pb2.Claim(namespace=self.namespace, name=self.name, uid=self.uid)


@dataclass(frozen=True)
class TimedResponses:
    """The CDI IDs of each claim by its UID, and the milliseconds of each call."""

    ids: dict[str, tuple[str, ...]]
    milliseconds: tuple[float, ...]


class KubeletClient:
    """A connection to a driver that was registered through its registration socket. Use it in a `with` statement."""

    def __init__(self, registration: Path) -> None:
        with _rpc_errors_are_driver_failures("register"), grpc.insecure_channel(f"unix:{registration}") as channel:
            stub = registration_v1_pb2_grpc.RegistrationStub(channel)
            info = stub.GetInfo(registration_v1_pb2.InfoRequest(), timeout=_RPC_TIMEOUT, wait_for_ready=True)
            if _SERVICE not in info.supported_versions:
                supported = ", ".join(info.supported_versions)
                raise DriverFailed(f"{info.name} does not support {_SERVICE}, only {supported}")
            stub.NotifyRegistrationStatus(
                registration_v1_pb2.RegistrationStatus(plugin_registered=True), timeout=_RPC_TIMEOUT
            )
        self._channel = grpc.insecure_channel(f"unix:{info.endpoint}")
        self._stub = dra_v1_pb2_grpc.DRAPluginStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()

    def prepare(self, claims: Sequence[ClaimRef], concurrency: int) -> TimedResponses:
        """Call NodePrepareResources once for each claim."""
        return _timed(self._prepare, claims, concurrency)

    def unprepare(self, claims: Sequence[ClaimRef], concurrency: int) -> TimedResponses:
        """Call NodeUnprepareResources once for each claim."""
        return _timed(self._unprepare, claims, concurrency)

    def _prepare(self, claim: ClaimRef) -> Any:
        request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[claim.message()])
        with _rpc_errors_are_driver_failures(f"prepare claim {claim.name}"):
            return self._stub.NodePrepareResources(request, timeout=_RPC_TIMEOUT)

    def _unprepare(self, claim: ClaimRef) -> Any:
        request = dra_v1_pb2.NodeUnprepareResourcesRequest(claims=[claim.message()])
        with _rpc_errors_are_driver_failures(f"unprepare claim {claim.name}"):
            return self._stub.NodeUnprepareResources(request, timeout=_RPC_TIMEOUT)


@contextlib.contextmanager
def _rpc_errors_are_driver_failures(what: str) -> Iterator[None]:
    """Convert a failed call to DriverFailed, also if the driver has ended or does not answer in time."""
    try:
        yield
    except grpc.RpcError as failed:
        reason = f"{failed.code().name}: {failed.details()}" if isinstance(failed, grpc.Call) else str(failed)
        raise DriverFailed(f"the driver did not {what}: {reason}") from failed


def _timed(call: Callable[[ClaimRef], Any], claims: Sequence[ClaimRef], concurrency: int) -> TimedResponses:
    def one(claim: ClaimRef) -> tuple[Any, float]:
        began = time.perf_counter()
        answer = call(claim)
        return answer, (time.perf_counter() - began) * 1000

    with ThreadPoolExecutor(concurrency) as pool:
        done = list(pool.map(one, claims))
    ids = {claim.uid: _ids(answer, claim) for claim, (answer, _) in zip(claims, done, strict=True)}
    return TimedResponses(ids, tuple(took for _, took in done))


def _ids(answer: Any, claim: ClaimRef) -> tuple[str, ...]:
    """Return the CDI IDs of the claim in an answer. Raises DriverFailed if the claim has no entry or an error."""
    if claim.uid not in answer.claims:
        raise DriverFailed(f"the driver's answer has no entry for claim {claim.name}")
    entry = answer.claims[claim.uid]
    if entry.error:
        raise DriverFailed(f"the driver returned an error for claim {claim.name}: {entry.error}")
    return tuple(name for device in getattr(entry, "devices", ()) for name in device.cdi_device_ids)

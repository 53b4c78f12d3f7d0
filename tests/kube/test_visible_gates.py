"""Gates that are visible without metrics: from dry runs, served kinds and existing objects."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from testbed.errors import ApiError, UsageError
from testbed.kube.features import REQUIREMENT_GATES, visible_gates
from tests.fakes.kube import FakeKube

TRIED = {
    "DRAExtendedResource", "DRAConsumableCapacity", "DRADeviceTaints", "DRAPartitionableDevices", "DRADeviceBindingConditions",
}  # fmt: skip
DROPPED = {
    "DRAExtendedResource": "extendedResourceName",
    "DRAConsumableCapacity": "capacity",
    "DRADeviceTaints": "tolerations",
    "DRAPartitionableDevices": "sharedCounters",
    "DRADeviceBindingConditions": "bindingConditions",
}


class Server(FakeKube):
    """An API server that drops some fields of created objects, and refuses some kinds."""

    def __init__(self, *off: str, refuses: dict[str, int] | None = None) -> None:
        super().__init__()
        self.forgotten = {DROPPED[gate] for gate in off}
        self.refuses = refuses or {}
        self.missing: set[str] = set()

    def create(self, manifest: Any, **how: Any) -> Any:
        assert how == {"dry_run": True}
        self._answer(manifest["kind"])
        return _without(self.forgotten, copy.deepcopy(manifest))

    def list(self, api_version: str, kind: str, namespace: str | None = None, **selectors: str) -> Any:
        self._answer(kind)
        return super().list(api_version, kind, namespace)

    def _answer(self, kind: str) -> None:
        if kind in self.missing:
            raise UsageError(f"the API server has no {kind}")
        if kind in self.refuses:
            raise ApiError("?", self.refuses[kind], "Forbidden", "no")


def _without(names: set[str], content: Any) -> Any:
    if isinstance(content, list):
        return [_without(names, each) for each in content]
    if isinstance(content, dict):
        return {name: _without(names, each) for name, each in content.items() if name not in names}
    return content


def _shown(server: Any, version: str = "v1.37.0") -> dict[str, bool]:
    return visible_gates(server, version, dry_runs=True)


def test_gates_are_on_if_the_server_keeps_all_fields() -> None:
    server = Server()
    assert _shown(server) == dict.fromkeys(TRIED, True)
    assert server.objects == {}


@pytest.mark.parametrize("gate", sorted(TRIED))
def test_a_gate_is_off_if_its_field_is_dropped(gate: str) -> None:
    shown = _shown(Server(gate))
    assert [name for name, is_on in shown.items() if not is_on] == [gate]


def test_nothing_is_created_without_dry_runs() -> None:
    server = Server()
    server.create = None  # type: ignore[assignment,method-assign]  # never called
    assert visible_gates(server, "v1.37.0", dry_runs=False) == {}  # type: ignore[arg-type]  # the fake


def test_gates_of_refused_dry_runs_are_unknown() -> None:
    shown = _shown(Server(refuses={"ResourceSlice": 403, "DeviceClass": 422}))
    assert shown == {"DRAConsumableCapacity": True, "DRADeviceTaints": True}


def test_tolerations_of_older_servers_reveal_no_gate() -> None:
    assert "DRADeviceTaints" not in _shown(Server(), "v1.34.2-eks-1")
    assert "DRADeviceTaints" in _shown(Server(), "1.35+")


def test_an_unreachable_server_is_an_error() -> None:
    with pytest.raises(ApiError):
        _shown(Server(refuses={"ResourceClaim": 0}))


def test_the_gate_of_a_kind_that_is_not_served_is_off() -> None:
    server = Server()
    server.missing = {"DeviceTaintRule", "ResourceClaim"}
    shown = _shown(server)
    assert shown["DRADeviceTaintRules"] is False
    assert "DRAConsumableCapacity" not in shown


@pytest.mark.parametrize(
    ("spec", "on"),
    [
        ({"sharedCounters": [{}]}, {"DRAPartitionableDevices"}),
        ({"devices": [{}, {"consumesCounters": [{}]}]}, {"DRAPartitionableDevices"}),
        ({"devices": [{"bindingConditions": ["a"]}]}, {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"}),
        ({"devices": [{"allowMultipleAllocations": True}]}, {"DRAConsumableCapacity"}),
        ({"devices": [{"taints": [{}]}]}, {"DRADeviceTaints"}),
        ({"devices": [{}]}, set()),
    ],
)
def test_slices_reveal_gates(spec: dict[str, Any], on: set[str]) -> None:
    server = Server()
    server.put("ResourceSlice", "s", spec=spec)
    server.create = lambda *_, **__: {}  # type: ignore[method-assign]  # the fake's own; a trial has the last word
    assert {gate for gate, is_on in _shown(server).items() if is_on} == on - TRIED

    def refuse(*_: Any, **__: Any) -> Any:
        raise ApiError("POST", 403, "Forbidden", "no")

    server.create = refuse  # type: ignore[method-assign]  # the fake's own
    assert _shown(server) == dict.fromkeys(on, True)


def test_a_device_status_reveals_its_gate() -> None:
    server = Server()
    server.put("ResourceClaim", "c", status={"devices": [{}]})
    assert _shown(server)["DRAResourceClaimDeviceStatus"] is True


def test_dry_runs_are_only_for_gates_of_requirements() -> None:
    assert TRIED < REQUIREMENT_GATES

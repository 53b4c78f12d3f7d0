import importlib.metadata
import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor

from testbed.kubelet import generate
from testbed.kubelet.stubs import (
    dra_health_v1_pb2,
    dra_health_v1alpha1_pb2,
    dra_v1_pb2,
    dra_v1beta1_pb2,
    registration_v1_pb2,
)

ROOT = Path(__file__).parents[2]
STUBS = ROOT / generate.PACKAGE


def pinned() -> str:
    """Return the compiler version that the lint group names."""
    found = re.search(r'"grpcio-tools==([0-9.]+)"', (ROOT / "pyproject.toml").read_text())
    assert found
    return found[1]


def installed() -> str:
    try:
        return importlib.metadata.version("grpcio-tools")
    except importlib.metadata.PackageNotFoundError:
        return "none"


@pytest.mark.skipif(installed() != pinned(), reason=f"needs grpcio-tools {pinned()}, here is {installed()}")
def test_the_stubs_match_the_protos(tmp_path: Path) -> None:
    generate.generate(tmp_path)
    fresh = {path.name: path.read_bytes() for path in (tmp_path / generate.PACKAGE).iterdir()}
    assert fresh == {path.name: path.read_bytes() for path in STUBS.iterdir() if path.is_file()}


def test_every_proto_has_its_stubs() -> None:
    sources = {path.stem for path in (STUBS.parent / "protos").glob("*.proto")}
    assert {path.name.removesuffix("_pb2.py") for path in STUBS.glob("*_pb2.py")} == sources


def wire(file: FileDescriptor) -> dict[str, dict[str, int]]:
    """Return the messages with their field numbers, which with the paths define the wire format."""
    return {
        name: {field.name: field.number for field in message.fields}
        for name, message in file.message_types_by_name.items()
    }


def paths(file: FileDescriptor) -> set[str]:
    def path(method: MethodDescriptor) -> str:
        return f"/{method.containing_service.full_name}/{method.name}"

    return {path(method) for service in file.services_by_name.values() for method in service.methods}


DRA = {
    "Claim": {"namespace": 1, "uid": 2, "name": 3},
    "NodePrepareResourcesRequest": {"claims": 1},
    "NodePrepareResourcesResponse": {"claims": 1},
    "NodePrepareResourceResponse": {"devices": 1, "error": 2},
    "Device": {"request_names": 1, "pool_name": 2, "device_name": 3, "cdi_device_ids": 4},
    "NodeUnprepareResourcesRequest": {"claims": 1},
    "NodeUnprepareResourcesResponse": {"claims": 1},
    "NodeUnprepareResourceResponse": {"error": 1},
}


def test_dra_v1_matches_the_kubelet() -> None:
    assert wire(dra_v1_pb2.DESCRIPTOR) == {**DRA, "Device": {**DRA["Device"], "share_id": 5}}
    assert paths(dra_v1_pb2.DESCRIPTOR) == {
        f"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/{verb}"
        for verb in ("NodePrepareResources", "NodeUnprepareResources")
    }


def test_dra_v1beta1_is_dra_v1_without_shares() -> None:
    assert wire(dra_v1beta1_pb2.DESCRIPTOR) == DRA
    assert paths(dra_v1beta1_pb2.DESCRIPTOR) == {
        f"/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/{verb}"
        for verb in ("NodePrepareResources", "NodeUnprepareResources")
    }


def test_an_empty_share_differs_from_none() -> None:
    assert dra_v1_pb2.Device(share_id="").HasField("share_id")
    assert not dra_v1_pb2.Device().HasField("share_id")


def test_registration_matches_the_kubelet() -> None:
    assert wire(registration_v1_pb2.DESCRIPTOR) == {
        "InfoRequest": {},
        "PluginInfo": {"type": 1, "name": 2, "endpoint": 3, "supported_versions": 4},
        "RegistrationStatus": {"plugin_registered": 1, "error": 2},
        "RegistrationStatusResponse": {},
    }
    assert paths(registration_v1_pb2.DESCRIPTOR) == {
        "/pluginregistration.Registration/GetInfo",
        "/pluginregistration.Registration/NotifyRegistrationStatus",
    }


@pytest.mark.parametrize(
    ("descriptor", "version"),
    [(dra_health_v1_pb2.DESCRIPTOR, "v1"), (dra_health_v1alpha1_pb2.DESCRIPTOR, "v1alpha1")],
)
def test_health_matches_the_kubelet(descriptor: FileDescriptor, version: str) -> None:
    assert wire(descriptor) == {
        "NodeWatchResourcesRequest": {},
        "NodeWatchResourcesResponse": {"devices": 1},
        "DeviceHealth": {
            "device": 1,
            "health": 2,
            "last_updated_time": 3,
            "health_check_timeout_seconds": 4,
            "message": 5,
        },
        "DeviceIdentifier": {"pool_name": 1, "device_name": 2},
    }
    assert paths(descriptor) == {f"/{version}.DRAResourceHealth/NodeWatchResources"}
    assert dict(descriptor.enum_types_by_name["HealthStatus"].values_by_name.items())["UNHEALTHY"].number == 2
    (method,) = descriptor.services_by_name["DRAResourceHealth"].methods
    assert method.server_streaming

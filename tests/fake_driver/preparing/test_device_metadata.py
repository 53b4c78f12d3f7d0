"""Device metadata files. Their paths and format are those of the upstream libraries for drivers and readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fake_driver.devices.model import Device, Version
from fake_driver.errors import ConfigurationError
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim
from fake_driver.preparing.device_metadata import VERSIONS, MetadataFolder, container_path, device_entry

DRIVER = "gpu.example"
REF = ClaimRef("u-1", "default", "one")
GPU = Device("gpu-0", "gpu", {"model": "F100", "index": 0, "ecc": True, "driverVersion": Version("1.2.3")}, {})
BOTH = PreparedClaim(REF, (AllocatedDevice("gpu/big", "worker", "gpu-0"), AllocatedDevice("nic", "worker", "nic-0")))
NETWORK = {"interfaceName": "net0", "ips": ["10.0.0.1/8"]}


def find(_pool: str, name: str) -> Device:
    return GPU if name == "gpu-0" else Device(name, "nic", {}, {})


def known(device: Device, _use: AllocatedDevice) -> dict[str, Any]:
    return {"data": {}, **({"networkData": NETWORK} if device.kind == "nic" else {})}


@pytest.fixture
def folder(tmp_path: Path) -> MetadataFolder:
    return MetadataFolder(tmp_path / "metadata", DRIVER, VERSIONS, known)


def objects(path: str) -> list[dict[str, Any]]:
    """Return all objects in a file."""
    text, found = Path(path).read_text(), []
    while text.strip():
        one, end = json.JSONDecoder().raw_decode(text)
        found.append(one)
        text = text[end:].lstrip()
    return found


def test_the_path_has_the_name_of_the_claim_or_the_pods_name_for_a_generated_claim() -> None:
    start = "/var/run/kubernetes.io/dra-device-attributes"
    assert container_path(BOTH, "gpu", DRIVER) == f"{start}/resourceclaims/one/gpu/gpu.example-metadata.json"
    generated = PreparedClaim(REF, (), "mine")
    assert (
        container_path(generated, "gpu", DRIVER) == f"{start}/resourceclaimtemplates/mine/gpu/gpu.example-metadata.json"
    )


def test_there_is_a_file_for_each_request_with_an_object_in_each_version(folder: MetadataFolder) -> None:
    mounts = folder.write(BOTH, find)
    assert mounts.keys() == {"gpu", "nic"}
    newest, oldest = objects(mounts["gpu"]["hostPath"])
    assert newest.pop("apiVersion") == "metadata.resource.k8s.io/v1beta1"
    assert oldest.pop("apiVersion") == "metadata.resource.k8s.io/v1alpha1"
    assert newest == oldest
    assert newest == {
        "kind": "DeviceMetadata",
        "metadata": {"name": "one", "namespace": "default", "uid": "u-1", "generation": 1},
        "requests": [{"name": "gpu/big", "devices": [device_entry(GPU, BOTH.devices[0], DRIVER, {})]}],
    }


def test_a_device_has_its_attributes_as_in_its_slice_and_its_network(folder: MetadataFolder) -> None:
    assert device_entry(GPU, BOTH.devices[0], DRIVER, {}) == {
        "driver": DRIVER,
        "pool": "worker",
        "name": "gpu-0",
        "attributes": {
            "driverVersion": {"version": "1.2.3"}, "ecc": {"bool": True}, "index": {"int": 0}, "model": {"string": "F100"},
        },
    }  # fmt: skip
    (device,) = objects(folder.write(BOTH, find)["nic"]["hostPath"])[0]["requests"][0]["devices"]
    assert device["networkData"] == NETWORK


def test_metadata_of_a_generated_claim_has_the_pods_name_for_it(folder: MetadataFolder) -> None:
    mounts = folder.write(PreparedClaim(REF, BOTH.devices, "mine"), find)
    assert objects(mounts["gpu"]["hostPath"])[0]["podClaimName"] == "mine"


def test_a_file_is_mounted_read_only_at_the_path_that_readers_expect(folder: MetadataFolder) -> None:
    mount = folder.write(BOTH, find)["gpu"]
    assert (mount["containerPath"], mount["options"]) == (container_path(BOTH, "gpu", DRIVER), ["ro", "bind"])
    assert Path(mount["hostPath"]).stat().st_mode & 0o777 == 0o644


def test_an_unchanged_file_is_not_replaced(folder: MetadataFolder) -> None:
    path = Path(folder.write(BOTH, find)["gpu"]["hostPath"])
    before = path.stat().st_ino
    folder.write(BOTH, find)
    assert path.stat().st_ino == before
    path.write_text("damaged")
    folder.write(BOTH, find)
    assert objects(str(path))[0]["kind"] == "DeviceMetadata"


def test_files_are_removed_with_their_claim_and_orphaned_files_are_swept(
    folder: MetadataFolder, tmp_path: Path
) -> None:
    folder.write(BOTH, find)
    folder.write(PreparedClaim(ClaimRef("u-2", "default", "two"), BOTH.devices), find)
    folder.remove("u-1")
    folder.remove("u-1")
    assert [path.name for path in (tmp_path / "metadata").iterdir()] == ["u-2"]
    folder.sweep({"u-2"})
    assert (tmp_path / "metadata/u-2").exists()
    folder.sweep(())
    assert list((tmp_path / "metadata").iterdir()) == []


def test_without_versions_nothing_is_written(tmp_path: Path) -> None:
    assert MetadataFolder(tmp_path / "metadata", DRIVER, (), known).write(BOTH, find) == {}
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_version_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="unknown version 'v1beta2' of device metadata; did you mean v1beta1"):
        MetadataFolder(tmp_path, DRIVER, ("v1beta2",), known)

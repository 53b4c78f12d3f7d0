import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_driver.devices.model import Attributes, Device, DeviceNetwork, Version
from fake_driver.errors import ClaimRefused, DamagedFile
from fake_driver.preparing.cdi import CdiDevice, CdiFolder, device_name, environment, spec
from fake_driver.preparing.claims import AllocatedDevice, PreparedClaim

ALLOCATED = AllocatedDevice("gpu", "worker", "gpu-0")
UID = "1d0f0000-0000-4000-8000-000000000001"


def test_a_container_learns_every_attribute_and_capacity() -> None:
    attributes: Attributes = {
        "uuid": "u-1",
        "driverVersion": Version("1.2.3"),
        "ecc": True,
        "index": 0,
        "resource.kubernetes.io/pcieRoot": "pci0000:00",
    }
    assert environment(Device("gpu-0", "gpu", attributes, {"memory": "80Gi"}), ALLOCATED, "worker") == {
        "GPU_DEVICE_GPU_0": "gpu-0",
        "GPU_DEVICE_GPU_0_UUID": "u-1",
        "GPU_DEVICE_GPU_0_DRIVER_VERSION": "1.2.3",
        "GPU_DEVICE_GPU_0_ECC": "true",
        "GPU_DEVICE_GPU_0_INDEX": "0",
        "GPU_DEVICE_GPU_0_MEMORY": "80Gi",
        "GPU_DEVICE_GPU_0_RESOURCE_KUBERNETES_IO_PCIE_ROOT": "pci0000:00",
    }


def test_a_container_learns_that_it_has_admin_access() -> None:
    found = environment(
        Device("gpu-0", "gpu", {"adminAccess": "never"}, {}), replace(ALLOCATED, admin_access=True), "worker"
    )
    assert found == {"GPU_DEVICE_GPU_0": "gpu-0", "GPU_DEVICE_GPU_0_ADMIN_ACCESS": "true"}


def test_shares_of_one_device_have_variables_of_different_names() -> None:
    gpu = Device("gpu-0", "gpu", {}, {"memory": "48Gi"})
    one, two = (
        environment(
            gpu,
            replace(ALLOCATED, share_id=f"{start}-0000-4000-8000-000000000000", consumed={"memory": memory}),
            "worker",
        )
        for start, memory in (("1f3a5c7e", "4Gi"), ("2b4d6f80", "8Gi"))
    )
    assert {**one, **two} == {
        "GPU_DEVICE_GPU_0": "gpu-0",
        "GPU_DEVICE_GPU_0_MEMORY": "48Gi",
        "GPU_DEVICE_GPU_0_SHARE_1F3A5C7E": "1f3a5c7e-0000-4000-8000-000000000000",
        "GPU_DEVICE_GPU_0_SHARE_1F3A5C7E_MEMORY": "4Gi",
        "GPU_DEVICE_GPU_0_SHARE_2B4D6F80": "2b4d6f80-0000-4000-8000-000000000000",
        "GPU_DEVICE_GPU_0_SHARE_2B4D6F80_MEMORY": "8Gi",
    }


def test_opaque_configuration_overrides_the_hardware_file_in_a_container() -> None:
    device = Device(
        "nic-0",
        "nic",
        {"interface": "eth0"},
        {},
        network=DeviceNetwork("eth0", ("192.0.2.1/24", "2001:db8::1/64"), "02:00"),
    )
    use = replace(ALLOCATED, facts={"INTERFACE": "net1", "MTU": "9000"}, variables={"user_a": "b"})
    assert environment(device, use, "worker") == {
        "NIC_DEVICE_NIC_0": "nic-0",
        "NIC_DEVICE_NIC_0_INTERFACE": "net1",
        "NIC_DEVICE_NIC_0_IPS": "192.0.2.1/24,2001:db8::1/64",
        "NIC_DEVICE_NIC_0_MTU": "9000",
        "user_a": "b",
    }


@pytest.mark.parametrize(
    ("edits", "version"),
    [
        ({}, "0.3.0"),
        ({"mounts": [{"hostPath": "/a", "containerPath": "/b"}]}, "0.3.0"),
        ({"mounts": [{"hostPath": "/a", "containerPath": "/b", "type": "bind"}]}, "0.4.0"),
        ({"deviceNodes": [{"path": "/dev/a", "hostPath": "/dev/null"}]}, "0.5.0"),
        ({"additionalGids": [5], "mounts": [{"type": "bind"}]}, "0.7.0"),
    ],
)
def test_the_spec_has_the_hardware_files_edits_and_declares_the_version_that_they_need(
    edits: dict[str, Any], version: str
) -> None:
    found = spec("v/c", (CdiDevice("a", {"A": "b"}, edits),))
    assert found["cdiVersion"] == version
    assert found["devices"][0]["containerEdits"] == {"env": ["A=b"], **edits}


def test_the_spec_declares_the_oldest_version_that_allows_its_names() -> None:
    assert spec("v/c", (CdiDevice("a", {"A": "b"}),))["cdiVersion"] == "0.3.0"
    assert spec("v/c", (CdiDevice("1a", {"A": "b"}),))["cdiVersion"] == "0.5.0"


def test_a_spec_has_exactly_the_keys_that_the_runtime_knows() -> None:
    assert spec("v/c", (CdiDevice("1a", {"A": "b", "C": "d=e"}),)) == {
        "cdiVersion": "0.5.0",
        "kind": "v/c",
        "devices": [{"name": "1a", "containerEdits": {"env": ["A=b", "C=d=e"]}}],
    }


labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
requests = labels | st.builds("{}/{}".format, labels, labels)
pools = st.sampled_from(["worker", "box", "box-1", "box.1", "box/1", "admin", "share-1"])
allocations = st.builds(AllocatedDevice, requests, pools, labels, st.booleans(), st.none() | st.just("share-1"))


@settings(max_examples=40, deadline=None)  # it waits for the disk
@given(st.lists(allocations, min_size=1, max_size=4, unique=True))
def test_names_are_valid_unique_and_can_be_read_back(
    tmp_path_factory: pytest.TempPathFactory, devices: list[AllocatedDevice]
) -> None:
    names = [device_name(UID, device, "worker") for device in devices]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?", name) for name in names)
    folder = CdiFolder(tmp_path_factory.getbasetemp(), "gpu.example")
    folder.write(UID, tuple(CdiDevice(name, {"A": "b"}) for name in names))
    claim = folder.rebuild_claim(UID, "worker")
    assert isinstance(claim, PreparedClaim)
    assert list(claim.devices) == devices


def test_devices_with_the_same_name_in_two_pools_stay_different_in_containers() -> None:
    uses = [AllocatedDevice("r", pool, "port-0") for pool in ("worker", "box-a", "box.a")]
    names = [device_name("u1", use, "worker") for use in uses]
    assert names == ["u1.r.port-0", "u1.r.port-0:pool_box-a", "u1.r.port-0:pool_box.a"]
    port = Device("port-0", "port", {"speed": 400}, {})
    own, one, two = (environment(port, use, "worker") for use in uses)
    assert own == {"PORT_DEVICE_PORT_0": "port-0", "PORT_DEVICE_PORT_0_SPEED": "400"}
    assert one == {
        "PORT_DEVICE_PORT_0_IN_B6793483": "port-0",
        "PORT_DEVICE_PORT_0_IN_B6793483_POOL": "box-a",
        "PORT_DEVICE_PORT_0_IN_B6793483_SPEED": "400",
    }
    assert not set(one) & set(two)


def test_two_different_devices_with_the_same_cdi_name_are_refused(tmp_path: Path) -> None:
    folder = CdiFolder(tmp_path / "cdi", "gpu.example")
    with pytest.raises(ClaimRefused, match=r"two different devices of the claim have the CDI name u1\.r\.a$"):
        folder.write("u1", (CdiDevice("u1.r.a", {"A": "b"}), CdiDevice("u1.r.a", {"A": "c"})))
    assert not (tmp_path / "cdi").exists()


def test_a_file_is_named_by_the_claim_and_readable_by_the_runtime(tmp_path: Path) -> None:
    folder = CdiFolder(tmp_path / "cdi", "gpu.example")
    folder.write(UID, (CdiDevice("a", {"A": "b"}), CdiDevice("a", {"A": "b"})))
    (file,) = (tmp_path / "cdi").iterdir()
    assert file.name == f"gpu.example-{UID}.json"
    assert file.stat().st_mode & 0o777 == 0o644
    assert [device["name"] for device in json.loads(file.read_text())["devices"]] == ["a"]


def test_a_cdi_file_is_written_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files_before_rename: list[list[str]] = []
    really = os.fsync

    def look(handle: int) -> None:
        files_before_rename.append([path.name for path in tmp_path.glob("*.json")])
        really(handle)

    monkeypatch.setattr(os, "fsync", look)
    CdiFolder(tmp_path, "gpu.example").write(UID, (CdiDevice("a", {"A": "b"}),))
    assert files_before_rename[0] == []


def test_files_of_other_drivers_are_ignored(tmp_path: Path) -> None:
    folder = CdiFolder(tmp_path, "gpu.example")
    CdiFolder(tmp_path, "gpu.example-2").write("aa", (CdiDevice("aa.r.d", {"A": "b"}),))
    folder.write("bb", (CdiDevice("bb.r.d", {"A": "b"}),))
    (tmp_path / "gpu.example-..json").write_text("{}")
    assert folder.claims() == ["bb"]


def test_files_of_a_driver_whose_name_begins_with_ours_are_not_removed_or_swept(tmp_path: Path) -> None:
    other = [f"gpu.example-2-{UID}.json", "gpu.example-3-aa.json", f".gpu.example-2-{UID}.json.unfinished"]
    for name in other:
        (tmp_path / name).write_text('{"kind": "gpu.example-3/device"}' if "aa" in name else "")
    folder = CdiFolder(tmp_path, "gpu.example")
    (tmp_path / f"gpu.example-{UID}.json").write_text("")
    assert folder.claims() == [UID]
    assert folder.remove_all() == 1
    folder.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(other)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"kind": "gpu.example/device", "devices": [{"name": "other.r.d"}]}']
)
def test_a_file_with_unexpected_content_is_damaged(tmp_path: Path, content: str) -> None:
    (tmp_path / "gpu.example-aa.json").write_text(content)
    with pytest.raises(DamagedFile, match="has unexpected content"):
        CdiFolder(tmp_path, "gpu.example").rebuild_claim("aa", "worker")


def test_only_unfinished_files_of_a_killed_process_are_swept(tmp_path: Path) -> None:
    for name in (".gpu.example-aa.json.unfinished", ".other-aa.json.unfinished", "gpu.example-bb.json"):
        (tmp_path / name).touch()
    CdiFolder(tmp_path, "gpu.example").sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other-aa.json.unfinished", "gpu.example-bb.json"]

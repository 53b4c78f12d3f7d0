"""Mutants of the cluster that change or refuse the status of devices."""

from __future__ import annotations

from typing import Any

import pytest

from ci.mutants.activation import cluster_mutant
from testbed.errors import ApiError
from testbed.kube.client import Kube
from tests.e2e.cluster_mutants.objects import (
    Object,
    claim,
    dry_run,
    status,
    status_with_condition,
)


def write_condition(kube: Kube, manager: str, kind: str, value: str) -> dict[str, str]:
    """Write a condition as one of several field managers; return all conditions that are stored afterwards."""
    made = status_with_condition(kind, value)
    del made["status"]["allocation"]
    stored = kube.apply(made, manager=manager, force=False, subresource="status")
    return {each["type"]: each["status"] for each in stored["status"]["devices"][0]["conditions"]}


def test_one_writer_removes_or_changes_the_conditions_of_another(kube: Kube) -> None:
    kube.apply({key: value for key, value in status().items() if value is not None}, subresource="status")
    write_condition(kube, "network", "LinkUp", "True")
    assert write_condition(kube, "storage", "Mounted", "True") == {"LinkUp": "True", "Mounted": "True"}
    with pytest.raises(ApiError, match='conflict with "network"'):
        write_condition(kube, "storage", "LinkUp", "False")
    with cluster_mutant(kube, "one-condition-only"):
        assert len(write_condition(kube, "network", "LinkUp", "False")) == 1
    with cluster_mutant(kube, "field-owners-forgotten"):
        write_condition(kube, "network", "LinkUp", "True")
        with pytest.raises(ApiError, match='conflict with "before-first-apply"'):
            write_condition(kube, "storage", "LinkUp", "False")


def device_status(**fields: Any) -> Object:
    """Return an allocated claim with these fields in its device status; the stored claim has no device status."""
    device = {"driver": "d.example", "pool": "p", "device": "x", **fields}
    return {**status(devices=[device]), "metadata": claim("without-device-status")["metadata"]}


@pytest.mark.parametrize(
    ("field", "most"),
    [
        (
            "conditions",
            [status_with_condition(f"C{index}", "True")["status"]["devices"][0]["conditions"][0] for index in range(8)],
        ),
        ("data", {"long": "x" * 10229}),
        ("networkData", {"ips": [f"10.9.8.{index}/24" for index in range(16)]}),
        ("networkData", {"interfaceName": "x" * 256}),
        ("networkData", {"hardwareAddress": "x" * 128}),
    ],
    ids=["conditions", "data", "ips", "name", "address"],
)
def test_device_statuses_of_the_maximum_size_are_refused(kube: Kube, field: str, most: Any) -> None:
    assert dry_run(kube, device_status(**{field: most}))["status"]["devices"][0][field] == most
    with cluster_mutant(kube, "device-status-narrow"):
        assert dry_run(kube, device_status(**{field: type(most)()}))
        with pytest.raises(ApiError, match="mutant-device-status-narrow"):
            dry_run(kube, device_status(**{field: most}))


def test_hardware_addresses_are_dropped(kube: Kube) -> None:
    with cluster_mutant(kube, "hardware-addresses-dropped"):
        stored = dry_run(
            kube, device_status(networkData={"interfaceName": "net1", "hardwareAddress": "02:00:5e:10:00:01"})
        )
        assert stored["status"]["devices"][0]["networkData"] == {"interfaceName": "net1"}

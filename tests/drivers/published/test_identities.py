from __future__ import annotations

import pytest

from testbed.drivers.published.identities import identity_collisions, identity_of, name_collisions
from testbed.kube.client import Object
from testbed.models.driver.devices import Identity
from testbed.models.driver_file import DriverFile, load_driver_file
from tests.fakes.cluster import DRIVER, driver_path, slice_spec
from tests.fakes.driver_files import with_values

PER_NODE = Identity(attribute="address", scope="node")
CLUSTER = Identity(attribute="address", scope="cluster")


def _file(identity: Identity) -> DriverFile:
    return with_values(load_driver_file(driver_path()), "devices", identity=identity)


def _slice(pool: str, *addresses: str, **where: object) -> Object:
    devices = [
        {"name": f"gpu-{index}", "attributes": {"address": {"string": address}}}
        for index, address in enumerate(addresses)
    ]
    spec = {key: value for key, value in slice_spec(pool, 0).items() if key != "nodeName"}
    return {"metadata": {"name": pool}, "spec": {**spec, **(where or {"nodeName": pool}), "devices": devices}}


def test_nodes_may_have_the_same_identities() -> None:
    same = [_slice("a", "0000:01", "0000:02"), _slice("b", "0000:01", "0000:02")]
    assert identity_collisions(same, _file(PER_NODE)) == []
    assert identity_collisions(same, _file(CLUSTER)) == [
        "gpu-0 of a and gpu-0 of b have the same address 0000:01",
        "gpu-1 of a and gpu-1 of b have the same address 0000:02",
    ]


def test_two_devices_of_a_node_collide() -> None:
    assert identity_collisions([_slice("a", *["0000:01"] * 6)], _file(PER_NODE)) == [
        "gpu-0 of a and gpu-1 of a and gpu-2 of a and gpu-3 of a and 2 more have the same address 0000:01"
    ]


def test_a_device_that_is_published_twice_does_not_collide_with_itself() -> None:
    assert identity_collisions([_slice("a", "0000:01"), _slice("a", "0000:01")], _file(PER_NODE)) == []


@pytest.mark.parametrize(("where", "collides"), [({"allNodes": True}, True), ({"nodeSelector": {}}, False)])
def test_a_network_attached_device_collides_only_with_those_of_the_same_nodes(
    where: dict[str, object], collides: bool
) -> None:
    found = identity_collisions([_slice("a", "0000:01"), _slice("net", "0000:01", **where)], _file(PER_NODE))
    assert bool(found) is collides


def test_devices_of_other_classes_may_have_the_identity_of_an_ordinary_one() -> None:
    published = _slice("a", "0000:01", "0000:01")
    published["spec"]["devices"][1]["attributes"]["purpose"] = {"string": "vfio"}
    assert identity_collisions([published], _file(PER_NODE)) == []


@pytest.mark.parametrize("name", ["index", f"{DRIVER}/index"])
def test_an_identity_may_have_a_domain_and_any_type(name: str) -> None:
    file = _file(Identity(attribute=name, scope="node"))
    assert identity_of({"attributes": {"index": {"int": 7}}}, file) == "7"
    assert identity_of({"attributes": {f"{DRIVER}/index": {"int": 0}}}, file) == "0"
    assert identity_of({"attributes": {"other.example/index": {"int": 7}}}, file) == ""


def test_names_collide_only_on_a_node() -> None:
    file = _file(CLUSTER)
    assert name_collisions([_slice("a", "0000:01"), _slice("b", "0000:02")], file) == []
    assert name_collisions([_slice("a", "0000:01"), _slice("more", "0000:02", nodeName="a")], file) == [
        "gpu-0 of a and gpu-0 of a, pool more have the same name gpu-0"
    ]
    assert name_collisions([_slice("a", "0000:01"), _slice("net", "0000:02", allNodes=True)], file) == [
        "gpu-0 of a and gpu-0 of pool net have the same name gpu-0"
    ]

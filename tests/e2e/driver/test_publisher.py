"""The fake driver's publisher on a real API server without other components. Each test takes three seconds and needs no root."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_driver.api.client import ApiClient
from fake_driver.devices.model import (
    DeviceChange,
    DeviceGroup,
    Hardware,
    NetworkTemplate,
    Partitioning,
    PartitionProfile,
    RequestPolicy,
    Taint,
    Version,
)
from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import apply_changes, pools
from fake_driver.journal import Journal
from fake_driver.publishing.counter_placement import with_counters_beside_devices
from fake_driver.publishing.planner import comparable, with_generation
from fake_driver.publishing.publisher import Publisher
from fake_driver.publishing.slices import Layout, Owner, for_network, for_node
from fake_driver.publishing.validation import find_problems
from testbed import binaries
from testbed.waiting import Budget, eventually_true
from tests.e2e.api_server import MINORS, ApiServer, running

DRIVER = "gpu.dra-testbed.example"
HARDWARE = Path(__file__).parents[3] / "manifests" / "hardware"
SOON = Budget("slices", 15, "a few writes, and at most some back-off")
EVERYTHING = (
    "DRADeviceTaints", "DRAPartitionableDevices", "DRAConsumableCapacity", "DRADeviceBindingConditions", "DRAListTypeAttributes",
)  # fmt: skip
Object = dict[str, Any]


@dataclass
class Writer:
    """A publisher for a hardware file whose devices can be changed while it runs."""

    server: ApiServer
    publisher: Publisher
    api: ApiClient
    journal: Path
    changes: list[DeviceChange] = field(default_factory=list)

    def change(self, change: DeviceChange) -> None:
        """Change the hardware."""
        self.changes.append(change)
        self.publisher.refresh()

    def events(self, event: str) -> list[Object]:
        """Return the journal entries with this event name."""
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [entry for entry in map(json.loads, lines) if entry["event"] == event]

    def wait_until(self, check: Callable[[], bool]) -> None:
        """Wait until a condition on the API server or the journal is met."""
        assert eventually_true(check, SOON), self.journal.read_text()

    def stop(self) -> None:
        """Stop the publisher, as if the process ended."""
        self.api.close()
        self.publisher.stop()


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[..., Writer]]:
    """Return a function that publishes a built-in hardware file for a node or (with '') for the network."""
    started: list[Writer] = []

    def start(server: ApiServer, hardware: str, node: str = "worker") -> Writer:
        node_pool, *of_the_network = pools(hardware_file.read(HARDWARE / f"{hardware}.yaml"), node or "worker")
        api, journal, changes = server.client(), tmp_path / f"journal-{len(started)}.jsonl", list[DeviceChange]()

        def slices(owner: Owner) -> Sequence[Object]:
            if not node:
                return for_network(DRIVER, of_the_network)
            layout = Layout(node_pool.devices, publisher.slice_names)
            return for_node(DRIVER, owner, apply_changes(node_pool.devices, changes, node_pool.name), layout)

        publisher = Publisher(api, DRIVER, node, slices, Journal(journal))
        writer = Writer(server, publisher, api, journal, changes)
        started.append(writer)
        publisher.start()
        assert publisher.published.wait(20), journal.read_text() if journal.exists() else "nothing was written"
        return writer

    yield start
    for writer in started:
        writer.stop()
        writer.server.delete_slices()


@pytest.fixture(scope="module", params=MINORS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Run an API server with all features that have fields in slices and are known to this version."""
    gates = dict.fromkeys(known_gates(request.param), True)
    with running(ApiServer(tmp_path_factory.mktemp("server"), request.param, gates)) as found:
        yield found


@pytest.fixture(scope="module", params=MINORS)
def plain_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Run an API server that drops the fields of all features and serves only v1beta1."""
    served = ",".join(f"resource.k8s.io/{name}={name == 'v1beta1'}".lower() for name in ("v1", "v1beta2", "v1beta1"))
    with running(
        ApiServer(tmp_path_factory.mktemp("plain"), request.param, disabled_gates(request.param), served)
    ) as found:
        yield found


def known_gates(minor: str) -> list[str]:
    """Return the feature gates of this version that control fields of slices and are not locked."""
    known = binaries.lock_for(minor).gates
    return [name for name in EVERYTHING if name in known and not known[name].locked]


def disabled_gates(minor: str) -> dict[str, bool]:
    """Return these gates and all that depend on them, switched off."""
    ours, known = set(known_gates(minor)), binaries.lock_for(minor).gates
    dependent = {name for name, gate in known.items() if gate.default and ours & set(gate.needs)}
    return dict.fromkeys(ours | dependent, False)


def spec_of(slice_: Object) -> Object:
    """Return the spec of a slice without the defaults that the server adds."""
    return dict(comparable(slice_)["spec"])


def expected_specs(server: ApiServer, hardware: str) -> dict[str, Object]:
    """Return the specs that the driver writes to this server, by slice name."""
    (node_pool, *network) = pools(hardware_file.read(HARDWARE / f"{hardware}.yaml"), "worker")
    slices = [*for_node(DRIVER, Owner("worker", "x"), node_pool.devices), *for_network(DRIVER, network)]
    return {slice_["metadata"]["name"]: spec_of(slice_) for slice_ in place_counters(server, slices)}


def place_counters(server: ApiServer, slices: list[Object]) -> list[Object]:
    """Return the slices with the counters where this version expects them."""
    return with_counters_beside_devices(slices) if server.minor == "1.34" else slices


def versions(server: ApiServer) -> dict[str, str]:
    """Return the resource version of each slice, which changes with every write."""
    return {name: item["metadata"]["resourceVersion"] for name, item in server.slices().items()}


@pytest.mark.parametrize("hardware", sorted(path.stem for path in HARDWARE.glob("*.yaml")))
def test_a_hardware_file_is_published_with_one_write_for_each_slice(
    server: ApiServer, write: Callable[..., Writer], hardware: str
) -> None:
    writers = [write(server, hardware), write(server, hardware, node="")]

    stored = server.slices()
    assert {name: spec_of(item) for name, item in stored.items()} == expected_specs(server, hardware)
    assert {item["spec"]["pool"]["generation"] for item in stored.values()} == {1}
    assert sum(len(writer.events("slice-write")) for writer in writers) == len(stored)
    assert [writer.events("slice-fields-dropped") for writer in writers] == [[], []]


def test_a_restart_writes_nothing(server: ApiServer, write: Callable[..., Writer]) -> None:
    write(server, "mixed-fleet").stop()
    before = versions(server)

    write(server, "mixed-fleet")

    assert versions(server) == before


def test_one_changed_device_causes_one_write_and_other_taints_keep_their_time(
    server: ApiServer, write: Callable[..., Writer]
) -> None:
    writer = write(server, "thousand")
    writer.change(DeviceChange(devices=("gpu-500",), attributes={"model": "F2"}))
    writer.wait_until(lambda: len(writer.events("slice-write")) == 9)
    writer.change(DeviceChange(devices=("gpu-500",), taints=(Taint("a", "NoSchedule"),)))
    writer.wait_until(lambda: len(taints(server, "gpu-500")) == 1)
    before, writes = taints(server, "gpu-500"), len(writer.events("slice-write"))
    writer.change(DeviceChange(devices=("gpu-500",), taints=(Taint("b", "NoSchedule"),)))
    writer.wait_until(lambda: len(taints(server, "gpu-500")) == 2)

    assert taints(server, "gpu-500")[:1] == before
    assert len(writer.events("slice-write")) == writes + 1
    writer.change(DeviceChange(devices=("gpu-0",), absent=True))
    writer.wait_until(lambda: len(writer.events("slice-write")) == writes + 2)
    assert sum(len(item["spec"]["devices"]) for item in server.slices().values()) == 999
    assert len({item["spec"]["pool"]["generation"] for item in server.slices().values()}) == 1


def taints(server: ApiServer, device: str) -> list[Object]:
    """Return the taints of a device."""
    everything = [each for item in server.slices().values() for each in item["spec"]["devices"]]
    return [taint for each in everything if each["name"] == device for taint in each.get("taints", ())]


def test_deleted_and_edited_slices_are_restored(server: ApiServer, write: Callable[..., Writer]) -> None:
    writer = write(server, "a100")
    node, network = expected_specs(server, "a100"), write(server, "fabric", node="")
    of_pools = versions(server)

    server.delete_slices("spec.nodeName=worker")
    writer.wait_until(lambda: {name: spec_of(item) for name, item in server.slices().items() if name in node} == node)
    name = min(node)
    server.edit_slice(name, lambda spec: spec["devices"].pop())
    writer.wait_until(lambda: spec_of(server.slices()[name]) == node[name])

    assert len(writer.events("slice-gone")) == len(node)
    untouched = {name: version for name, version in of_pools.items() if name.startswith("pool-")}
    assert untouched == {name: version for name, version in versions(server).items() if name.startswith("pool-")}
    assert not network.events("slice-gone")


values = st.sampled_from([True, -(2**63), "x" * 64, Version("1.2.3-rc.1+x")])
policies = st.sampled_from(
    [RequestPolicy("1Gi"), RequestPolicy("1Gi", ("1Gi", "2Gi")), RequestPolicy("1Gi", (), "1Gi", "7Gi", "512Mi")]
)
parts = st.builds(
    Partitioning,
    counters=st.just({f"c{index}": "8" for index in range(32)}),
    profiles=st.integers(1, 70).map(lambda count: (PartitionProfile("1g.5gb", count, {"c0": "1", "c31": "8"}),)),
    whole=st.booleans(),
)
wholes = st.builds(
    DeviceGroup,
    kind=st.sampled_from(["gpu", "k" * 32]),
    count=st.integers(1, 130),
    attributes=st.dictionaries(st.sampled_from(["a", "x.example/" + "y" * 32]), values),
    taints=st.lists(
        st.builds(Taint, st.sampled_from(["a", "b.example/c"]), st.just("NoSchedule"), st.just("v")), max_size=2
    ).map(tuple),
    network=st.none() | st.just(NetworkTemplate("net", ("10.64.0.0/10",))),
)
cut = st.builds(lambda whole, parts: replace(whole, count=whole.count % 9 + 1, partitions=parts), wholes, parts)
shared = st.builds(
    lambda whole, policy: replace(whole, shared=True, capacity={"memory": "8Gi"}, policies={"memory": policy}),
    wholes,
    policies,
)


@settings(max_examples=25, deadline=None)
@given(group=wholes | cut | shared)
def test_an_api_server_accepts_every_valid_device_group(server: ApiServer, group: DeviceGroup) -> None:
    (node_pool,) = pools(Hardware("x", (group,)), "worker")
    found = for_node(DRIVER, Owner("worker", "x"), node_pool.devices)
    assert find_problems(found) == []
    for slice_ in place_counters(server, found):
        server.call(functools.partial(create_dry_run, server, with_generation(slice_, 1)))


def create_dry_run(server: ApiServer, slice_: Object, api: ApiClient) -> Object:
    """Return the object that the server would store. Raises ApiError if it refuses it."""
    return api._call("POST", server.slices_path, {"dryRun": "All"}, slice_)


@pytest.mark.parametrize("hardware", ["mixed-fleet", "a100", "l40s", "fabric"])
def test_dropped_fields_are_reported_and_a_restart_still_writes_nothing(
    plain_server: ApiServer, write: Callable[..., Writer], hardware: str
) -> None:
    node = "" if hardware == "fabric" else "node-2"
    first = write(plain_server, hardware, node)
    first.stop()
    before = versions(plain_server)
    second = write(plain_server, hardware, node)

    assert versions(plain_server) == before
    assert not second.events("slice-write")
    assert reported_gates(first) == reported_gates(second) == NEEDED[hardware]
    withheld = [entry["gates"] for entry in first.events("devices-withheld")]
    assert withheld == ([["DRAPartitionableDevices"]] if hardware == "a100" else [])


NEEDED = {
    "mixed-fleet": {"DRADeviceTaints", "DRAListTypeAttributes"},
    "a100": {"DRAPartitionableDevices"},
    "l40s": {"DRAConsumableCapacity"},
    "fabric": {"DRADeviceBindingConditions"},
}


def reported_gates(writer: Writer) -> set[str]:
    """Return the feature gates of dropped fields in the journal."""
    return {gate for entry in writer.events("slice-fields-dropped") for gate in entry["gates"]}

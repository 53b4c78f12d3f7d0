from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_driver.devices.model import CounterConsumption
from fake_driver.errors import ClaimRefused
from fake_driver.preparing.claims import (
    AllocatedDevice,
    ClaimRef,
    PreparedClaim,
    conflict,
    counter_conflict,
    read_allocation,
)

REF = ClaimRef("uid-1", "default", "one")
DRIVER = "gpu.example"


def claim(*results: Any, uid: str = "uid-1") -> dict[str, Any]:
    return {"metadata": {"uid": uid}, "status": {"allocation": {"devices": {"results": list(results)}}}}


def result(request: str = "gpu", device: str = "gpu-0", driver: str = DRIVER, **more: Any) -> dict[str, Any]:
    return {"request": request, "driver": driver, "pool": "worker", "device": device, **more}


def test_only_results_of_this_driver_are_read_in_their_order() -> None:
    found = read_allocation(claim(result(device="gpu-1"), result(driver="other"), result(device="gpu-0")), REF, DRIVER)
    assert [device.device for device in found.devices] == ["gpu-1", "gpu-0"]


def test_a_subrequest_is_kept_but_containers_refer_to_the_request() -> None:
    (device,) = read_allocation(claim(result(request="gpu/big")), REF, DRIVER).devices
    assert (device.request, device.base_request) == ("gpu/big", "gpu")


def test_admin_access_and_shares_are_read() -> None:
    devices = read_allocation(claim(result(adminAccess=True), result(shareID="share-1"), result()), REF, DRIVER).devices
    assert [device.admin_access for device in devices] == [True, False, False]
    assert [device.share_id for device in devices] == [None, "share-1", None]


def test_the_consumed_capacity_of_a_shared_device_is_read() -> None:
    (device,) = read_allocation(
        claim(result(shareID="s", consumedCapacity={"memory": "4Gi", "slices": "1"})), REF, DRIVER
    ).devices
    assert device.consumed == {"memory": "4Gi", "slices": "1"}


def test_a_generated_claim_keeps_the_pods_name_for_it() -> None:
    generated = claim(result())
    assert read_allocation(generated, REF, DRIVER).pod_claim == ""
    generated["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "mine"}
    assert read_allocation(generated, REF, DRIVER).pod_claim == "mine"


@pytest.mark.parametrize("name", ["../../etc", "a/b", "A", "a" * 64])
def test_a_name_that_must_not_become_part_of_a_path_is_refused(name: str) -> None:
    generated = claim(result())
    generated["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": name}
    with pytest.raises(ClaimRefused, match="must be a DNS label"):
        read_allocation(generated, REF, DRIVER)


GPU = AllocatedDevice("r", "p", "gpu-0")
SHARE, ADMIN = replace(GPU, share_id="s"), replace(GPU, admin_access=True)


@pytest.mark.parametrize(
    ("ours", "theirs", "exclude"),
    [
        (GPU, GPU, True),
        (GPU, SHARE, True),
        (SHARE, GPU, True),
        (SHARE, SHARE, False),
        (ADMIN, GPU, False),
        (GPU, ADMIN, False),
        (ADMIN, ADMIN, False),
        (GPU, replace(GPU, device="gpu-1"), False),
        (GPU, replace(GPU, pool="q"), False),
    ],
)
def test_which_allocations_of_a_device_exclude_each_other(
    ours: AllocatedDevice, theirs: AllocatedDevice, exclude: bool
) -> None:
    assert ours.excludes(theirs) is exclude


def test_a_claim_with_devices_of_another_driver_has_no_devices_to_prepare() -> None:
    assert read_allocation(claim(result(driver="other")), REF, DRIVER).devices == ()


@pytest.mark.parametrize(
    ("served", "text"),
    [
        (claim(result(), uid="uid-2"), "was replaced: the API server has UID uid-2"),
        ({"metadata": {"uid": "uid-1"}}, "is not allocated"),
        ({"metadata": {"uid": "uid-1"}, "status": {"allocation": None}}, "is not allocated"),
        (claim(result(device="../x")), "malformed"),
        (claim(result(request="a/b/c")), "malformed"),
        (claim({"driver": DRIVER}), "malformed"),
        (claim(result(shareID="a/b")), "malformed"),
    ],
)
def test_a_claim_that_must_not_be_prepared_is_refused(served: dict[str, Any], text: str) -> None:
    with pytest.raises(ClaimRefused, match=text):
        read_allocation(served, REF, DRIVER)


@pytest.mark.parametrize(
    "ref", [ClaimRef("../x", "d", "n"), ClaimRef("u", "../d", "n"), ClaimRef("u", "d", ""), ClaimRef("", "d", "n")]
)
def test_names_that_could_become_other_paths_are_refused(ref: ClaimRef) -> None:
    with pytest.raises(ClaimRefused):
        ref.validated()


def prepared(uid: str, *devices: AllocatedDevice) -> PreparedClaim:
    return PreparedClaim(ClaimRef(uid), devices)


def test_a_conflict_names_the_device_and_the_other_claim() -> None:
    text = conflict(
        prepared("new", AllocatedDevice("r", "p", "gpu-0")),
        {"old": prepared("old", AllocatedDevice("r", "p", "gpu-0"))},
    )
    assert "gpu-0" in text
    assert "old" in text


def test_a_claim_does_not_conflict_with_itself() -> None:
    mine = prepared("mine", AllocatedDevice("r", "p", "gpu-0"))
    assert not conflict(mine, {"mine": mine})


devices = st.builds(
    AllocatedDevice,
    st.just("r"),
    st.sampled_from(["p", "q"]),
    st.sampled_from(["gpu-0", "gpu-1"]),
    st.booleans(),
    st.none() | st.just("s"),
)


@given(st.lists(devices, max_size=3), st.lists(devices, max_size=3))
def test_there_is_a_conflict_exactly_if_two_allocations_exclude_each_other(
    ours: list[AllocatedDevice], theirs: list[AllocatedDevice]
) -> None:
    one, other = prepared("a", *ours), prepared("b", *theirs)
    assert bool(conflict(one, {"b": other})) == any(our.excludes(their) for our in ours for their in theirs)
    assert bool(conflict(one, {"b": other})) == bool(conflict(other, {"a": one}))


COUNTERS = {"compute": "7", "memory": "8Gi"}
DRAWS = {
    ("p", "whole"): CounterConsumption("s", COUNTERS, COUNTERS),
    **{
        ("p", f"third-{index}"): CounterConsumption("s", {"compute": "3", "memory": "4096Mi"}, COUNTERS)
        for index in range(3)
    },
    ("p", "one"): CounterConsumption("s", {"compute": "1", "memory": "512Mi"}, COUNTERS),
    ("p", "other"): CounterConsumption("t", COUNTERS, COUNTERS),
    ("q", "whole"): CounterConsumption("s", COUNTERS, COUNTERS),
}


def draws(pool: str, device: str) -> tuple[CounterConsumption, ...]:
    return (DRAWS[pool, device],) if (pool, device) in DRAWS else ()


def of(device: str, pool: str = "p", admin: bool = False) -> AllocatedDevice:
    return AllocatedDevice("r", pool, device, admin)


@pytest.mark.parametrize(
    ("ours", "theirs", "is_refused"),
    [
        ([of("whole")], [of("one")], True),
        ([of("one")], [of("whole")], True),
        ([of("one")], [of("third-0")], False),
        ([of("third-2")], [of("third-0"), of("third-1")], True),
        ([of("one")], [of("third-0"), of("third-1")], True),  # there is compute for it, but no memory
        ([of("whole"), of("one")], [], True),
        ([of("whole")], [of("other")], False),
        ([of("whole")], [of("one", pool="q")], False),
        ([of("whole")], [of("whole", pool="q")], False),
        ([of("whole", admin=True)], [of("one")], False),
        ([of("whole")], [of("one", admin=True)], False),
        ([of("unheard-of")], [of("whole")], False),
        ([of("unheard-of")], [of("whole"), of("one")], False),
        ([of("whole")], [of("whole")], False),  # that is a conflict already
    ],
)
def test_which_devices_are_parts_of_the_same_hardware(
    ours: list[AllocatedDevice], theirs: list[AllocatedDevice], is_refused: bool
) -> None:
    assert bool(counter_conflict(prepared("a", *ours), {"b": prepared("b", *theirs)}, draws)) is is_refused


def test_a_counter_conflict_names_the_device_and_the_claim_that_holds_it() -> None:
    whole, part = prepared("a", of("whole")), prepared("b", of("one"))
    assert counter_conflict(part, {"a": whole}, draws) == (
        "device one is part of the same hardware as device whole, which is still prepared for claim a, which was not unprepared yet"
    )
    both = prepared("c", of("whole"), of("one"))
    assert counter_conflict(both, {}, draws) == "claim c has devices whole, one, which are parts of the same hardware"


def test_a_claim_has_no_counter_conflict_with_itself() -> None:
    whole = prepared("a", of("whole"))
    assert not counter_conflict(whole, {"a": whole}, draws)

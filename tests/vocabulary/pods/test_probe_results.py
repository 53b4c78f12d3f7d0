"""A comparison of devices that failed is told in words, and what probes printed is kept without what may be a secret."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.drivers.published.slices import Device
from testbed.vocabulary.pods.probe_results import (
    ProbeResult,
    SeenDevices,
    Settings,
    describe_empty_results,
    explain_comparison,
)
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World

ONE, TWO, THREE = (Device("gpu.example", f"node-{node}", "gpu-0") for node in "123")
MATCHES = r"^GPU_DEVICES_\w+_UUID=(?P<id>\S+)$"
PRINTED = "PATH=/bin\nGPU_DEVICE_GPU_0_UUID=gpu-6c1f\nKUBERNETES_SERVICE_PORT=443\n"


def _seen(*devices: Device, printed: str = PRINTED) -> SeenDevices:
    return SeenDevices([ProbeResult("pod", "workload", printed, MATCHES, frozenset(devices))])


def test_a_container_that_shows_no_device_says_so_in_its_first_line_and_which_line_was_meant() -> None:
    first, cause, seen = explain_comparison("==", _seen(), frozenset({TWO}))
    assert first == "expected container workload of pod pod to see gpu-0 of node-2; it sees no device"
    assert cause == (
        "  likely cause: no line of what the probe printed matches spec.probe.matches, "
        "or the driver put nothing into the container"
    )
    assert "the probe printed 3 lines in container workload of pod pod" in seen
    assert "the nearest is GPU_DEVICE_GPU_0_UUID=…; all of it is in probe/ of the evidence" in seen
    assert "6c1f" not in seen


@pytest.mark.parametrize("printed", ["PATH=/bin\nHOME=/\n", ""])
def test_where_nothing_is_like_a_device_no_line_is_named(printed: str) -> None:
    (*_, seen) = explain_comparison("==", _seen(printed=printed), frozenset({TWO}))
    assert "nearest" not in seen
    assert ("none is like it" if printed else "the probe printed nothing in container workload of pod pod") in seen


@pytest.mark.parametrize(
    ("devices", "wanted", "first", "cause"),
    [
        ({ONE}, {TWO}, "to see gpu-0 of node-2; it sees gpu-0 of node-1", "another device into the container"),
        ({ONE}, {ONE, TWO}, "to see gpu-0 of node-1 and gpu-0 of node-2; it sees gpu-0 of node-1", "only a part"),
        ({ONE, TWO}, {TWO}, "to see gpu-0 of node-2; it sees gpu-0 of node-1 and gpu-0", "more into the container"),
        ({ONE}, set(), "to see no device; it sees gpu-0 of node-1", "more into the container"),
    ],
)
def test_other_and_more_and_fewer_devices_are_told_apart(
    devices: set[Device], wanted: set[Device], first: str, cause: str
) -> None:
    told = explain_comparison("==", _seen(*devices), wanted)
    assert first in told[0]
    assert cause in told[1]
    assert explain_comparison("==", wanted, _seen(*devices)) == told


def test_a_subset_is_told_with_what_is_beyond_it() -> None:
    assert "to see only gpu-0 of node-1; it sees gpu-0 of node-2" in explain_comparison("<=", _seen(TWO), {ONE})[0]
    assert "to see gpu-0 of node-1; it sees no device" in explain_comparison("<=", {ONE}, _seen())[0]


def test_of_several_pods_the_first_wrong_one_is_told() -> None:
    told = explain_comparison(
        "==", {"a": _seen(ONE), "b": _seen(), "c": _seen()}, {"a": {ONE}, "b": {TWO}, "c": {THREE}}
    )
    assert "it sees no device" in told[0]
    assert told[-1] == "  the same of 1 more"


@pytest.mark.parametrize(
    ("one", "other", "said", "cause", "looked"),
    [
        (ONE, TWO, "the first sees gpu-0 of node-1, the other gpu-0 of node-2", "another device into one", "first"),
        (None, TWO, "the first sees no device, the other gpu-0 of node-2", "no line of what the probe", "first"),
        (ONE, None, "the first sees gpu-0 of node-1, the other no device", "no line of what the probe", "second"),
    ],
)
def test_of_two_containers_none_is_taken_for_the_truth(
    one: Device | None, other: Device | None, said: str, cause: str, looked: str
) -> None:
    first, second = (
        SeenDevices([ProbeResult(pod, "workload", PRINTED, MATCHES, frozenset(filter(None, [device])))])
        for pod, device in (("first", one), ("second", other))
    )
    told, why, seen = explain_comparison("==", first, second)

    assert (
        told == f"expected container workload of pod first and container workload of pod second to see the same; {said}"
    )
    assert cause in why
    assert f"of pod {looked}" in seen


def test_of_two_containers_with_settings_none_is_taken_for_the_truth() -> None:
    told, why = explain_comparison(
        "==", Settings("container a of pod first", ["one"]), Settings("container a of pod second", ())
    )

    assert told == (
        "expected container a of pod first and container a of pod second to see the same; "
        "the first sees 'one', the other none"
    )
    assert "for one of them only" in why


def test_comparisons_of_what_no_container_shows_are_not_told_here() -> None:
    assert explain_comparison("==", {ONE}, {TWO}) == []
    assert explain_comparison("==", {"a"}, {"b"}) == []
    assert explain_comparison("!=", {ONE}, {ONE}) == []
    assert explain_comparison("==", 0, 1) == []


def test_where_something_else_failed_only_containers_that_show_nothing_are_told() -> None:
    probe_results = [*_seen(ONE).probe_results, *_seen().probe_results]
    (line,) = describe_empty_results(probe_results)
    assert line.startswith("  last seen: container workload of pod pod shows no device; the probe printed 3 lines")


def test_seen_devices_are_a_set_of_devices() -> None:
    assert _seen(ONE) == frozenset({ONE})
    assert repr(_seen(ONE)) == repr(frozenset({ONE}))


def test_what_a_probe_printed_is_evidence_without_what_may_be_a_secret(
    world: Callable[..., World], tmp_path: Path
) -> None:
    here = world("no-env")
    kube: Any = here.kube
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        assert pod.container("cat").settings == frozenset()
        kube.said["first/cat"] = "GPU=1\nDB_PASSWORD=hunter2\nAPI_TOKEN: c2Vj\n"
        assert pod.seen_devices == frozenset()
        scenario.capture(tmp_path)
        assert (tmp_path / "probe/first.cat.settings.txt").exists()
        assert (tmp_path / "probe/first.cat.txt").read_text() == "GPU=1\nDB_PASSWORD=…\nAPI_TOKEN:…\n"
    assert here.probe_results.of(scenario.namespace) == ()


@pytest.mark.parametrize(
    ("shown", "wanted", "said", "cause"),
    [
        (
            set(),
            {"one"},
            "the setting 'one' of spec.configuration; it shows none",
            "applied no configuration of the claim or of its class",
        ),
        (
            {"other"},
            {"one"},
            "the setting 'one' of spec.configuration; it shows 'other'",
            "configuration of another request, or not the one that counts",
        ),
        (
            {"one", "other"},
            {"one"},
            "the setting 'one' of spec.configuration; it shows 'one' and 'other'",
            "a configuration that is for another request",
        ),
        (
            {"one"},
            frozenset(),
            "no setting of spec.configuration; it shows 'one'",
            "a configuration that is for another request",
        ),
    ],
)
def test_settings_that_are_not_the_claims_are_told(shown: set[str], wanted: set[str], said: str, cause: str) -> None:
    first, why, _ = explain_comparison("==", Settings("container left of pod pod", shown), wanted)

    assert first == f"expected container left of pod pod to show {said}"
    assert cause in why

"""Failed comparisons of devices are explained, and the output of probes is kept without possible secrets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.drivers.published.slices import Device
from testbed.vocabulary.checked_sets import NONE
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


def test_a_container_without_devices_is_explained_by_the_most_similar_line() -> None:
    first, cause, seen = explain_comparison("==", _seen(), frozenset({TWO}))
    assert first == "expected container workload of pod pod to see gpu-0 of node-2; it sees no device"
    assert cause == (
        "  likely cause: the driver added nothing to the container, "
        "or no line that the probe printed matches spec.probe"
    )
    assert "the probe printed 3 lines in container workload of pod pod" in seen
    assert "the most similar is GPU_DEVICE_GPU_0_UUID=…; the whole output is in probe/ of the evidence" in seen
    assert "6c1f" not in seen


@pytest.mark.parametrize("printed", ["PATH=/bin\nHOME=/\n", ""])
def test_no_line_is_named_when_none_is_similar(printed: str) -> None:
    (*_, seen) = explain_comparison("==", _seen(printed=printed), frozenset({TWO}))
    assert "most similar" not in seen
    assert ("none is similar" if printed else "the probe printed nothing in container workload of pod pod") in seen


@pytest.mark.parametrize(
    ("devices", "wanted", "first", "cause"),
    [
        ({ONE}, {TWO}, "to see gpu-0 of node-2; it sees gpu-0 of node-1", "another device to the container"),
        (
            {ONE},
            {ONE, TWO},
            "to see gpu-0 of node-1 and gpu-0 of node-2; it sees gpu-0 of node-1",
            "only some of the devices",
        ),
        (
            {ONE, TWO},
            {TWO},
            "to see gpu-0 of node-2; it sees gpu-0 of node-1 and gpu-0",
            "devices that were not allocated",
        ),
        ({ONE}, set(), "to see no device; it sees gpu-0 of node-1", "devices that were not allocated"),
    ],
)
def test_other_surplus_and_missing_devices_have_different_causes(
    devices: set[Device], wanted: set[Device], first: str, cause: str
) -> None:
    lines = explain_comparison("==", _seen(*devices), wanted)
    assert first in lines[0]
    assert cause in lines[1]
    assert explain_comparison("==", wanted, _seen(*devices)) == lines


def test_a_failed_subset_comparison_is_explained() -> None:
    assert "to see only gpu-0 of node-1; it sees gpu-0 of node-2" in explain_comparison("<=", _seen(TWO), {ONE})[0]
    assert "to see gpu-0 of node-1; it sees no device" in explain_comparison("<=", {ONE}, _seen())[0]


def test_the_first_wrong_pod_is_explained() -> None:
    lines = explain_comparison(
        "==", {"a": _seen(ONE), "b": _seen(), "c": _seen()}, {"a": {ONE}, "b": {TWO}, "c": {THREE}}
    )
    assert "it sees no device" in lines[0]
    assert lines[-1] == "  and 1 more that differ"


@pytest.mark.parametrize(
    ("one", "other", "expected", "cause", "shown_pod"),
    [
        (ONE, TWO, "the first sees gpu-0 of node-1, the other gpu-0 of node-2", "another device to one", "first"),
        (None, TWO, "the first sees no device, the other gpu-0 of node-2", "added nothing to the container", "first"),
        (ONE, None, "the first sees gpu-0 of node-1, the other no device", "added nothing to the container", "second"),
    ],
)
def test_neither_of_two_containers_is_taken_as_correct(
    one: Device | None, other: Device | None, expected: str, cause: str, shown_pod: str
) -> None:
    first, second = (
        SeenDevices([ProbeResult(pod, "workload", PRINTED, MATCHES, frozenset(filter(None, [device])))])
        for pod, device in (("first", one), ("second", other))
    )
    lines, why, seen = explain_comparison("==", first, second)

    assert (
        lines
        == f"expected container workload of pod first and container workload of pod second to see the same; {expected}"
    )
    assert cause in why
    assert f"of pod {shown_pod}" in seen


def test_neither_of_two_containers_with_settings_is_taken_as_correct() -> None:
    lines, why = explain_comparison(
        "==", Settings("container a of pod first", ["one"]), Settings("container a of pod second", ())
    )

    assert lines == (
        "expected container a of pod first and container a of pod second to see the same; "
        "the first sees 'one', the other none"
    )
    assert "for only one of the containers" in why


def test_other_comparisons_are_not_explained() -> None:
    assert explain_comparison("==", {ONE}, {TWO}) == []
    assert explain_comparison("==", {"a"}, {"b"}) == []
    assert explain_comparison("!=", {ONE}, {ONE}) == []
    assert explain_comparison("==", 0, 1) == []


def test_only_containers_without_devices_are_described() -> None:
    probe_results = [*_seen(ONE).probe_results, *_seen().probe_results]
    (line,) = describe_empty_results(probe_results)
    assert line.startswith("  last seen: container workload of pod pod shows no device; the probe printed 3 lines")


def test_seen_devices_are_a_set_of_devices() -> None:
    assert _seen(ONE) == frozenset({ONE})
    assert repr(_seen(ONE)) == repr(frozenset({ONE}))


def test_the_output_of_a_probe_is_evidence_without_possible_secrets(
    world: Callable[..., World], tmp_path: Path
) -> None:
    here = world("no-env")
    kube: Any = here.kube
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        pod = scenario.pod("first").should_run()
        assert pod.container("cat").settings == NONE
        kube.outputs["first/cat"] = "GPU=1\nDB_PASSWORD=hunter2\nAPI_TOKEN: c2Vj\n"
        assert pod.seen_devices == NONE
        scenario.capture(tmp_path)
        assert (tmp_path / "probe/first.cat.settings.txt").exists()
        assert (
            tmp_path / "probe/first.cat.txt"
        ).read_text() == "GPU=1\nDB_PASSWORD=(redacted)\nAPI_TOKEN: (redacted)\n"
    assert here.probe_results.of(scenario.namespace) == ()


@pytest.mark.parametrize(
    ("shown", "wanted", "expected", "cause"),
    [
        (
            set(),
            {"one"},
            "the setting 'one' of spec.configuration; it shows none",
            "did not apply the configuration of the claim or of its class",
        ),
        (
            {"other"},
            {"one"},
            "the setting 'one' of spec.configuration; it shows 'other'",
            "configuration of another request, or one of lower precedence",
        ),
        (
            {"one", "other"},
            {"one"},
            "the setting 'one' of spec.configuration; it shows 'one' and 'other'",
            "a configuration for another request",
        ),
        (
            {"one"},
            frozenset(),
            "no setting of spec.configuration; it shows 'one'",
            "a configuration for another request",
        ),
    ],
)
def test_wrong_settings_are_explained(shown: set[str], wanted: set[str], expected: str, cause: str) -> None:
    first, why, _ = explain_comparison("==", Settings("container left of pod pod", shown), wanted)

    assert first == f"expected container left of pod pod to show {expected}"
    assert cause in why


@pytest.mark.parametrize(
    ("errors", "denied"), [("cat: /dev/x: Permission denied", True), ("cat: no such file", False), ("", False)]
)
def test_a_probe_that_was_denied_access_is_explained(errors: str, denied: bool) -> None:
    result = ProbeResult("pod", "workload", "", MATCHES, code=1, errors=errors)
    assert ("asRoot: true in spec.probe" in result.summary) == denied

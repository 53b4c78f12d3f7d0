from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from fake_driver.roles.metrics import METRICS, Metrics, resource_of
from fake_driver.roles.node_driver import NodeProcess
from fake_driver.settings import Settings

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi

_SAMPLE = re.compile(r'(\w+)(\{(\w+="([^"\\\n]|\\["\\n])*"(,(?=\w)|(?=\})))+\})? [-+]?[0-9.e+-]+')


def test_each_family_is_described_once_and_every_line_is_in_the_format() -> None:
    metrics = Metrics({"fake_driver_devices": lambda: {(("health", 'odd"\\\nname'),): 2}})
    metrics.record_event("prepare", {"seconds": 0.004})
    lines = metrics.render().splitlines()
    comments = [line for line in lines if line.startswith("#")]
    assert [line.split()[2] for line in comments] == [name for name in METRICS for _ in range(2)]
    assert all(_SAMPLE.fullmatch(line) for line in lines if line not in comments), lines


def test_a_duration_is_counted_in_every_bucket_that_is_large_enough() -> None:
    metrics = Metrics({})
    for seconds in (0.004, 0.004, 60.0):
        metrics.record_event("prepare", {"seconds": seconds})
    metrics.record_event("unprepare", {"seconds": 0.1, "error": "no"})
    text = metrics.render()
    start = 'fake_driver_claim_seconds_bucket{outcome="success",verb="prepare",le='
    assert f'{start}"0.0025"}} 0' in text
    assert f'{start}"0.005"}} 2' in text
    assert f'{start}"45.0"}} 2' in text
    assert f'{start}"+Inf"}} 3' in text
    assert 'fake_driver_claim_seconds_sum{outcome="success",verb="prepare"} 60.008' in text
    assert 'fake_driver_claim_seconds_count{outcome="error",verb="unprepare"} 1' in text


@pytest.mark.parametrize(
    ("event", "facts", "line"),
    [
        ("slice-write", {"verb": "create"}, 'fake_driver_slice_writes_total{verb="create"} 1'),
        ("status-write", {}, "fake_driver_status_writes_total 1"),
        ("fault", {"call": "prepare", "code": "ABORTED"}, 'fake_driver_faults_total{call="prepare",code="ABORTED"} 1'),
    ],
)
def test_events_of_the_journal_are_counted(event: str, facts: dict[str, str], line: str) -> None:
    metrics = Metrics({})
    metrics.record_event(event, facts)
    assert f"\n{line}\n" in metrics.render()


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("/api/v1/nodes/worker", "nodes"),
        ("/apis/resource.k8s.io/v1/resourceslices", "resourceslices"),
        ("/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/b/status", "resourceclaims/status"),
        ("/apis/resource.k8s.io", "discovery"),
        ("/version", "discovery"),
    ],
)
def test_the_resource_of_a_path(where: str, name: str) -> None:
    assert resource_of(where) == name


def test_a_process_serves_its_metrics(
    start_driver: Callable[..., NodeProcess], settings: Settings, fake_api: FakeApi, kubelet: Kubelet
) -> None:
    process = start_driver(replace(settings, probes="127.0.0.1:0"))
    fake_api.wait_until(lambda: bool(fake_api.slices))
    kubelet.prepare(Path(settings.data) / "dra.sock", fake_api.claim(), fake_api.claim("two", ("gpu-9",)))
    assert process._publisher.published.wait(5)
    fake_api.wait_until(lambda: bool(fake_api.applied))
    assert process._probes
    with urlopen(f"http://127.0.0.1:{process._probes.port}/metrics", timeout=5) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        page = answer.read().decode().splitlines()
    for line in (
        'fake_driver_info{driver="gpu.dra-testbed.example",node="worker"} 1',
        "fake_driver_claims_prepared 1",
        'fake_driver_devices{health="HEALTHY"} 4',
        "fake_driver_slices 1",
        'fake_driver_slice_writes_total{verb="create"} 1',
        'fake_driver_claim_seconds_count{outcome="success",verb="prepare"} 1',
        'fake_driver_claim_seconds_count{outcome="error",verb="prepare"} 1',
        'fake_driver_api_requests_total{code="201",method="POST",resource="resourceslices"} 1',
        'fake_driver_api_requests_total{code="200",method="GET",resource="resourceclaims"} 2',
    ):
        assert line in page

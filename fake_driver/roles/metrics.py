"""The Prometheus metrics at /metrics. Implemented here, because a client library would cost memory on each node for one page of text.

Counters are updated by events of the journal and responses of the API server; gauges are computed for each scrape.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from fake_driver.roles.probes import Pages

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Seconds. The smallest buckets are for claims that are prepared already; the largest is the kubelet's timeout.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 45.0)
_VERBS = ("prepare", "unprepare")
Labels = tuple[tuple[str, str], ...]
Gauge = Callable[[], Mapping[Labels, float]]
METRICS = {
    "fake_driver_info": ("gauge", "Which driver serves which node."),
    "fake_driver_claim_seconds": ("histogram", "How long the kubelet waited for one claim, by verb and outcome."),
    "fake_driver_claims_prepared": ("gauge", "Claims that are prepared on this node."),
    "fake_driver_devices": ("gauge", "Devices by their health."),
    "fake_driver_slices": ("gauge", "ResourceSlices of this driver and node in the API server."),
    "fake_driver_slice_writes_total": ("counter", "Writes of ResourceSlices that succeeded, by verb."),
    "fake_driver_status_writes_total": ("counter", "Writes of device status that succeeded."),
    "fake_driver_api_requests_total": (
        "counter",
        "Requests to the API server; code 0 means that there was no response.",
    ),
    "fake_driver_faults_total": ("counter", "Armed faults that took effect."),
}


class Metrics:
    """The metrics of one process. Thread-safe."""

    def __init__(self, gauges: Mapping[str, Gauge]) -> None:
        self._gauges = gauges
        self._guard = threading.Lock()
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._buckets: Counter[tuple[Labels, float]] = Counter()
        self._seconds: Counter[Labels] = Counter()

    def record_event(self, event: str, facts: Mapping[str, Any]) -> None:
        """Count an event of the journal."""
        if event in _VERBS and "seconds" in facts:  # a call that an armed fault aborted processed no claim
            self._observe((("outcome", "error" if "error" in facts else "success"), ("verb", event)), facts["seconds"])
        elif event == "slice-write":
            self._count("fake_driver_slice_writes_total", verb=str(facts["verb"]))
        elif event == "status-write":
            self._count("fake_driver_status_writes_total")
        elif event == "fault":
            self._count("fake_driver_faults_total", call=str(facts["call"]), code=str(facts["code"]))

    def record_request(self, method: str, path: str, status: int) -> None:
        """Count a request to the API server."""
        self._count("fake_driver_api_requests_total", code=str(status), method=method, resource=resource_of(path))

    def render(self) -> str:
        """Return the page in the Prometheus text format."""
        with self._guard:
            found = [*self._histogram(), *((name, labels, float(n)) for (name, labels), n in self._counts.items())]
        for name, gauge in self._gauges.items():
            found += ((name, labels, value) for labels, value in gauge().items())
        return "".join(
            f"# HELP {family} {about}\n# TYPE {family} {kind}\n{''.join(_lines(family, found))}"
            for family, (kind, about) in METRICS.items()
        )

    def pages(self) -> Pages:
        """Return the page of metrics by its path, for the probe server."""
        return {"/metrics": (_CONTENT_TYPE, self.render)}

    def _count(self, name: str, **labels: str) -> None:
        with self._guard:
            self._counts[name, tuple(sorted(labels.items()))] += 1

    def _observe(self, labels: Labels, seconds: float) -> None:
        with self._guard:
            self._counts["fake_driver_claim_seconds_count", labels] += 1
            self._seconds[labels] += seconds  # type: ignore[assignment]  # a Counter also adds floats
            for bound in _BUCKETS:
                self._buckets[labels, bound] += seconds <= bound

    def _histogram(self) -> Iterator[tuple[str, Labels, float]]:
        for labels, total in self._seconds.items():
            yield "fake_driver_claim_seconds_sum", labels, float(total)
            count = self._counts["fake_driver_claim_seconds_count", labels]
            for bound, within in [*((str(each), self._buckets[labels, each]) for each in _BUCKETS), ("+Inf", count)]:
                yield "fake_driver_claim_seconds_bucket", (*labels, ("le", bound)), float(within)


def resource_of(path: str) -> str:
    """Return the resource in a path of the API, with its subresource; `discovery` for paths without a resource."""
    segments = path.strip("/").split("/")
    segments = segments[2:] if segments[0] == "api" else segments[3:]
    segments = segments[2:] if segments[:1] == ["namespaces"] and len(segments) > 2 else segments
    return "/".join((segments[0], *segments[2:])) if segments else "discovery"


def _lines(family: str, found: Iterable[tuple[str, Labels, float]]) -> Iterator[str]:
    names = {family, f"{family}_bucket", f"{family}_sum", f"{family}_count"}
    for name, labels, value in sorted(each for each in found if each[0] in names):
        label_text = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
        yield f"{name}{{{label_text}}} {value:g}\n" if label_text else f"{name} {value:g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

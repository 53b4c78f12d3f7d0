"""ResourceSlices of a driver that is not judged, and that contradict each other. For `running`."""

from __future__ import annotations

from typing import Any

DRIVER = "contradictory.dra-testbed.example"


def _slice(name: str, count: int) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": "everywhere", "generation": 1, "resourceSliceCount": count},
            "allNodes": True,
            "devices": [{"name": "the-same"}],
        },
    }


SLICES = (_slice("contradictory-first", 1), _slice("contradictory-second", 3))
"""Two slices of one generation that define the same device and disagree about how many slices the pool has."""

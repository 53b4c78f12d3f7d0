"""The permissions that the manifests grant the driver in each role: resources and verbs, as in RBAC rules."""

import functools
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2] / "manifests" / "fake_driver" / "rendered"


@functools.cache
def granted(role: str) -> frozenset[tuple[str, str]]:
    """Return the permissions of the node driver or the network driver."""
    found = _cluster_roles()["gpu.dra-testbed.example" + ("-network" if role == "network" else "")]
    return frozenset(
        (resource, verb) for rule in found["rules"] for resource in rule["resources"] for verb in rule["verbs"]
    )


def _cluster_roles() -> dict[str, Any]:
    documents = yaml.safe_load_all((ROOT / "fake-gpu-with-fabric.yaml").read_text())
    return {each["metadata"]["name"]: each for each in documents if each["kind"] == "ClusterRole"}

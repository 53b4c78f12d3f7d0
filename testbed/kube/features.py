"""What an API server is: its version, the feature gates that are really on, the versions of resource.k8s.io that it serves.

Asked of the server itself, for clusters whose configuration is not ours; providers and `status` call it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from testbed.errors import ApiError
from testbed.kube.client import Kube

DRA = "resource.k8s.io"
_ENABLED = re.compile(r"^kubernetes_feature_enabled\{(?P<labels>[^}]*)\}\s+(?P<value>[01])(?:\.0)?$", re.MULTILINE)
_NAME = re.compile(r'name="(?P<name>[^"]+)"')
_REFUSED = (401, 403, 404)


@dataclass(frozen=True)
class Features:
    """What was found. `gates` is None where it may not be read."""

    version: str
    gates: Mapping[str, bool] | None
    resource_versions: tuple[str, ...]


def read(kube: Kube) -> Features:
    """Ask for all of it."""
    return Features(version(kube), gates(kube), resource_versions(kube))


def version(kube: Kube) -> str:
    """The server's version, like 1.37.1."""
    return str(kube.request("GET", "/version")["gitVersion"]).removeprefix("v")


def gates(kube: Kube) -> Mapping[str, bool] | None:
    """The API server's feature gates as they are, whoever set them; None for users who may not read its metrics."""
    try:
        text = str(kube.request("GET", "/metrics", timeout=30))
    except ApiError as refused:
        if refused.status in _REFUSED:
            return None
        raise
    return parse_gates(text)


def parse_gates(metrics: str) -> dict[str, bool]:
    """The gates in a component's metrics."""
    found = ((_NAME.search(line["labels"]), line["value"] == "1") for line in _ENABLED.finditer(metrics))
    return {name["name"]: is_on for name, is_on in found if name}


def resource_versions(kube: Kube) -> tuple[str, ...]:
    """The versions of resource.k8s.io that are served, the preferred one first; none where there is no such API."""
    for group in kube.request("GET", "/apis")["groups"]:
        if group["name"] == DRA:
            preferred = str(group["preferredVersion"]["version"])
            return tuple(dict.fromkeys([preferred, *(str(each["version"]) for each in group["versions"])]))
    return ()

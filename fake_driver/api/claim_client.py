"""Reads and writes ResourceClaims in the API version that the server supports.

The driver uses only the metadata and the status of claims, which are the same in all versions. So only the URL and `apiVersion` differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from fake_driver.api.client import REQUEST_TIMEOUT, ApiClient, Object, url_path
from fake_driver.api.served_versions import GROUP, SUPPORTED, newest_version
from fake_driver.errors import ApiError


class ClaimClient:
    """A client for ResourceClaims. Thread-safe."""

    def __init__(self, api: ApiClient) -> None:
        # Most servers serve this version. For the others, the first request fails with 404 and discovery follows.
        self._api, self._version = api, SUPPORTED[0]

    def get(self, namespace: str, name: str, timeout: float = REQUEST_TIMEOUT) -> Object:
        """Return a claim."""
        deadline = time.monotonic() + timeout
        return self._with_served_version(
            lambda version: self._api.get(_path(version, namespace, name), timeout=deadline - time.monotonic()),
            deadline,
        )

    def apply(self, namespace: str, name: str, uid: str, devices: Sequence[Object], field_manager: str) -> Object:
        """Apply a field manager's `status.devices` if the claim still has this UID; return the changed claim."""
        metadata = {"name": name, "namespace": namespace, "uid": uid}
        content = {"kind": "ResourceClaim", "metadata": metadata, "status": {"devices": devices}}
        return self._with_served_version(
            lambda version: self._api.apply(
                f"{_path(version, namespace, name)}/status",
                {"apiVersion": f"{GROUP}/{version}", **content},
                field_manager=field_manager,
            ),
            time.monotonic() + REQUEST_TIMEOUT,
        )

    def _with_served_version(self, call: Callable[[str], Object], deadline: float) -> Object:
        """Make a request with the known API version; on 404, discover the served version and try again if it is another one."""
        version = self._version
        try:
            return call(version)
        except ApiError as missing:
            if missing.status != 404:
                raise
            found = newest_version(self._api, deadline - time.monotonic())
            if found == version:
                raise  # the claim does not exist
        self._version = found
        return call(found)


def _path(version: str, namespace: str, name: str) -> str:
    return url_path("apis", GROUP, version, "namespaces", namespace, "resourceclaims", name)

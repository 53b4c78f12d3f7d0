"""Claims in the API server, in whichever version it serves them. The drivers' reads, the reporter and the attacher go through it.

Of a claim the driver uses what all versions say alike: its metadata and its status. So only the address and the name of the version differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from fake_driver.api.client import REQUEST_TIMEOUT, ApiClient, Object, url_path
from fake_driver.api.served_versions import GROUP, SUPPORTED, newest_version
from fake_driver.errors import ApiError


class ClaimClient:
    """Reads and writes claims. Thread-safe."""

    def __init__(self, api: ApiClient) -> None:
        # Nearly every server has it, so nobody waits for a question; the others are found out with their first answer.
        self._api, self._version = api, SUPPORTED[0]

    def get(self, namespace: str, name: str, timeout: float = REQUEST_TIMEOUT) -> Object:
        """A claim as it is."""
        late = time.monotonic() + timeout
        return self._spoken(
            lambda version: self._api.get(_path(version, namespace, name), timeout=late - time.monotonic()), late
        )

    def apply(self, namespace: str, name: str, uid: str, devices: Sequence[Object], manager: str) -> Object:
        """What a field manager says of devices in a claim's status, if it still is the claim with that UID; the claim as it is then."""
        metadata = {"name": name, "namespace": namespace, "uid": uid}
        content = {"kind": "ResourceClaim", "metadata": metadata, "status": {"devices": devices}}
        return self._spoken(
            lambda version: self._api.apply(
                f"{_path(version, namespace, name)}/status",
                {"apiVersion": f"{GROUP}/{version}", **content},
                manager=manager,
            ),
            time.monotonic() + REQUEST_TIMEOUT,
        )

    def _spoken(self, call: Callable[[str], Object], late: float) -> Object:
        """What a call brings in the version that the server has."""
        version = self._version
        try:
            return call(version)
        except ApiError as missing:
            if missing.status != 404:
                raise
            found = newest_version(self._api, late - time.monotonic())
            if found == version:
                raise  # the claim is missing, not the version
        self._version = found
        return call(found)


def _path(version: str, namespace: str, name: str) -> str:
    return url_path("apis", GROUP, version, "namespaces", namespace, "resourceclaims", name)

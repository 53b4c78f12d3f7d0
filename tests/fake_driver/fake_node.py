"""A driver with its files in a folder and a dict as API server, for tests of prepare and unprepare."""

import json
from pathlib import Path
from typing import Any

from fake_driver.devices.model import Device
from fake_driver.errors import ApiError
from fake_driver.preparing.cdi import CdiFolder
from fake_driver.preparing.checkpoint import Checkpoint
from fake_driver.preparing.claims import ClaimRef, Object, PreparedClaim
from fake_driver.preparing.device_metadata import VERSIONS, MetadataFolder
from fake_driver.preparing.driver import Collaborators, Driver, NodeFiles
from fake_driver.preparing.inventory import Inventory
from fake_driver.preparing.opaque_configuration import API_VERSION

NAME = "gpu.example"
EDITS = {"deviceNodes": [{"path": "/dev/fake2", "hostPath": "/dev/null"}]}
INVENTORY = Inventory(
    "worker",
    tuple(
        Device(f"gpu-{index}", "gpu", {"uuid": f"u-{index}"}, {}, container_edits=edits)
        for index, edits in enumerate([{}, {}, EDITS])
    ),
)


class Node:
    """A driver with its files in a folder and a dict as API server. It also records the driver's status updates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.api: dict[str, dict[str, Any]] = {}
        self.error: ApiError | None = None
        self.status_updates: list[tuple[str, str, bool]] = []
        self.crash_at = ""
        self.inventory = INVENTORY
        self.start()

    def start(self) -> None:
        """Start the driver, or restart it after a crash."""
        cdi = CdiFolder(self.folder / "cdi", NAME)
        checkpoint = Checkpoint(self.folder / "claims", lambda uid: cdi.rebuild_claim(uid, self.inventory.pool))
        metadata = MetadataFolder(self.folder / "metadata", NAME, VERSIONS, lambda _device, _allocated: {})
        collaborators = Collaborators(self.inventory, at_crash_point=self.at_crash_point)
        self.driver = Driver(NAME, collaborators, NodeFiles(checkpoint, cdi, metadata), self, self)
        self.driver.recover()

    def at_crash_point(self, point: str) -> None:
        if point == self.crash_at:
            self.crash_at = ""
            raise KeyboardInterrupt

    def get(self, namespace: str, name: str, timeout: float) -> Object:
        if self.error:
            raise self.error
        if name not in self.api:
            raise ApiError("GET claim", 404, "not found")
        return self.api[name]

    def prepared(self, claim: PreparedClaim, served: Object | None) -> None:
        self.status_updates.append(("prepared", claim.ref.uid, served is not None))

    def released(self, uid: str) -> None:
        self.status_updates.append(("released", uid, False))

    def allocate(
        self, name: str, *devices: str, uid: str = "", request: str = "gpu", config: Any = (), **more: Any
    ) -> ClaimRef:
        uid = uid or f"uid-{name}"
        results = [{"request": request, "driver": NAME, "pool": "worker", "device": one, **more} for one in devices]
        allocation = {"devices": {"results": results, "config": list(config)}}
        self.api[name] = {"metadata": {"uid": uid}, "status": {"allocation": allocation}}
        return ClaimRef(uid, "default", name)

    def results(self, name: str) -> list[dict[str, Any]]:
        """Return the allocation results of a claim, which tests may change."""
        found: list[dict[str, Any]] = self.api[name]["status"]["allocation"]["devices"]["results"]
        return found

    def files(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "cdi").glob("*"))

    def edits(self, ref: ClaimRef) -> list[dict[str, Any]]:
        """Return the container edits of each device of a claim."""
        content = json.loads((self.folder / f"cdi/{NAME}-{ref.uid}.json").read_text())
        return [device["containerEdits"] for device in content["devices"]]

    def env(self, ref: ClaimRef) -> list[str]:
        content = json.loads((self.folder / f"cdi/{NAME}-{ref.uid}.json").read_text())
        return [value for device in content["devices"] for value in device["containerEdits"]["env"]]


def names(prepared: Any) -> list[str]:
    return [one.device.device for one in prepared]


def config(kind: str = "GpuConfig", source: str = "FromClaim", requests: tuple[str, ...] = (), **fields: Any) -> Any:
    parameters = {"apiVersion": API_VERSION, "kind": kind, **fields}
    return {"source": source, "requests": list(requests), "opaque": {"driver": NAME, "parameters": parameters}}

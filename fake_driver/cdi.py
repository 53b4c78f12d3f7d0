"""CDI spec files: how the container runtime learns what to put into containers. One file per claim, named by its UID.

Names: the kind is `<driver>/device`; a device is `<claim UID>.<request>[.<subrequest>].<device>[:<share>]`. Labels and UIDs have no
dots, so no two allocations share a name, and no name is ever used again with another content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fake_driver.claims import AllocatedDevice, ClaimRef, PreparedClaim
from fake_driver.errors import Damaged
from fake_driver.files import remove, sweep, write_whole
from fake_driver.hardware.model import Device, Value, Version
from fake_driver.names import UID, fits

Environment = Mapping[str, str]
_CLASS = "device"


@dataclass(frozen=True)
class CdiDevice:
    """What one allocated device adds to a container."""

    name: str
    env: Environment


def environment(device: Device) -> dict[str, str]:
    """The variables that tell a container which device it got: GPU_DEVICE_GPU_0=gpu-0, GPU_DEVICE_GPU_0_UUID=…, and so on."""
    stem = f"{_variable(device.kind)}_DEVICE_{_variable(device.name)}"
    facts = {**device.attributes, **device.capacity}
    return {stem: device.name, **{f"{stem}_{_variable(name)}": _text(facts[name]) for name in sorted(facts)}}


def device_name(uid: str, device: AllocatedDevice) -> str:
    """The CDI name of one allocated device."""
    name = f"{uid}.{device.request.replace('/', '.')}.{device.device}"
    return f"{name}:{device.share_id}" if device.share_id else name


def spec(kind: str, devices: tuple[CdiDevice, ...]) -> dict[str, Any]:
    """The content of a spec file; declares the oldest version that allows it."""
    digit_first = any(device.name[0].isdigit() for device in devices)
    edits = [
        {"name": device.name, "containerEdits": {"env": [f"{key}={value}" for key, value in device.env.items()]}}
        for device in devices
    ]
    return {"cdiVersion": "0.5.0" if digit_first else "0.3.0", "kind": kind, "devices": edits}


class CdiFolder:
    """The CDI directory of this node; touches only the files of this driver."""

    def __init__(self, folder: Path, driver: str) -> None:
        self.folder, self.driver = folder, driver
        self.kind = f"{driver}/{_CLASS}"

    def path(self, uid: str) -> Path:
        """Where a claim's spec file is."""
        return self.folder / f"{self.driver}-{uid}.json"

    def write(self, uid: str, devices: tuple[CdiDevice, ...]) -> None:
        """Write a claim's file, also when it is there. The folder may have gone: on most nodes it does not survive a reboot."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        unique = tuple({device.name: device for device in devices}.values())
        write_whole(self.path(uid), json.dumps(spec(self.kind, unique), indent=1).encode(), 0o644)

    def remove(self, uid: str) -> bool:
        """Remove a claim's file; False when there was none."""
        return remove(self.path(uid))

    def sweep(self) -> None:
        """Remove what a killed process left unfinished."""
        sweep(self.folder, f"{self.driver}-")

    def qualified(self, name: str) -> str:
        """The id that the kubelet hands to the runtime."""
        return f"{self.kind}={name}"

    def claims(self) -> list[str]:
        """The UIDs of the claims that have a file."""
        prefix = f"{self.driver}-"
        uids = (path.name.removeprefix(prefix).removesuffix(".json") for path in self.folder.glob(f"{prefix}*.json"))
        return sorted(uid for uid in uids if fits(UID, uid))

    def remembered(self, uid: str, pool: str) -> PreparedClaim | None:
        """The devices that a claim's file names; None when the file is not ours. The last resort where a checkpoint is lost."""
        try:
            content = json.loads(self.path(uid).read_bytes())
            if content["kind"] != self.kind:
                return None
            devices = tuple(_parsed(uid, device["name"], pool) for device in content["devices"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as broken:
            raise Damaged(f"the CDI file {self.path(uid)} does not say what we once wrote: {broken!r}") from broken
        return PreparedClaim(ClaimRef(uid), devices)


def _parsed(uid: str, name: str, pool: str) -> AllocatedDevice:
    whole, _, share = name.partition(":")
    owner, *request, device = whole.split(".")
    if owner != uid or not 1 <= len(request) <= 2:
        raise ValueError(f"{name!r} is not a device of claim {uid}")
    return AllocatedDevice("/".join(request), pool, device, share_id=share or None)


def _variable(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^A-Za-z0-9]", "_", words).upper()


def _text(value: Value) -> str:
    if isinstance(value, Version):
        return value.text
    return str(value).lower() if isinstance(value, bool) else str(value)

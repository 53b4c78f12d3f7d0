"""CDI spec files, from which the container runtime learns what to add to containers: one file for each claim, named by its UID.

The kind is `<driver>/device`. A device is `<claim UID>.<request>[.<subrequest>].<device>[:pool_<pool>][:<share>][:admin]`, without the
pool if it is the node's own. Labels and UIDs have no dots. Kubernetes names have no underscores, so `_` replaces the slash in a pool name.
Therefore each allocation has a different name, from which it can be read back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_driver.atomic_files import remove, remove_unfinished, write_atomically
from fake_driver.devices.model import Device, Value, Version
from fake_driver.errors import ClaimRefused, DamagedFile
from fake_driver.name_patterns import UID, matches
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim

Environment = Mapping[str, str]
Record = Callable[..., None]  # Journal.record
_CLASS = "device"
_ADMIN, _POOL = "admin", "pool_"
_SHARE_LETTERS = _POOL_LETTERS = 8
# The end of a file name of another driver whose name begins with ours and a hyphen: the rest of its name and a UUID.
_LONGER_NAME = re.compile(r".+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class CdiDevice:
    """What one allocated device adds to a container: environment variables, and the CDI edits of its hardware file."""

    name: str
    env: Environment
    edits: Mapping[str, Any] = field(default_factory=dict)


def environment(device: Device, allocated: AllocatedDevice, node_pool: str) -> dict[str, str]:
    """Return the environment variables that name an allocated device and its properties in a container.

    * GPU_DEVICE_GPU_0=gpu-0, GPU_DEVICE_GPU_0_UUID=…: the device, its attributes and its capacity
    * GPU_DEVICE_GPU_0_ADMIN_ACCESS=true: with admin access
    * GPU_DEVICE_GPU_0_SHARING_STRATEGY=… and user_a=b: from opaque configuration
    * GPU_DEVICE_GPU_0_SHARE_1F3A5C7E_MEMORY=4Gi: a share, with the start of its ID, because a container may have two shares of one device
    * PORT_DEVICE_PORT_0_IN_B99F26FE=port-0, PORT_DEVICE_PORT_0_IN_B99F26FE_POOL=fabric-ports: a device of another pool than the node's own,
      with a digest of the pool's name, because devices of two pools may have the same name
    """
    prefix = f"{_variable(device.kind)}_DEVICE_{_variable(device.name)}"
    pool: Environment = {}
    if allocated.pool != node_pool:
        prefix = f"{prefix}_IN_{_digest(allocated.pool)}"
        pool = {f"{prefix}_POOL": allocated.pool}
    values = {**device.attributes, **device.capacity}
    properties = {_variable(name): _text(values[name]) for name in sorted(values)}
    if device.network and device.network.ips:
        properties["IPS"] = ",".join(device.network.ips)
    access = {"ADMIN_ACCESS": "true"} if allocated.admin_access else {}
    all_properties = {f"{prefix}_{name}": text for name, text in {**properties, **allocated.facts, **access}.items()}
    return {prefix: device.name, **pool, **all_properties, **_share(prefix, allocated), **allocated.variables}


def _share(prefix: str, allocated: AllocatedDevice) -> Environment:
    if allocated.share_id is None:
        return {}
    name = f"{prefix}_SHARE_{_variable(allocated.share_id[:_SHARE_LETTERS])}"
    consumed = {
        f"{name}_{_variable(capacity)}": allocated.consumed[capacity] for capacity in sorted(allocated.consumed)
    }
    return {name: allocated.share_id, **consumed}


def device_name(uid: str, allocated: AllocatedDevice, node_pool: str) -> str:
    """Return the CDI name of a device that is allocated to the claim with this UID."""
    name = f"{uid}.{allocated.request.replace('/', '.')}.{allocated.device}"
    pool = _POOL + allocated.pool.replace("/", "_") if allocated.pool != node_pool else None
    suffixes = (pool, allocated.share_id, _ADMIN if allocated.admin_access else None)
    return ":".join((name, *filter(None, suffixes)))


def spec(kind: str, devices: tuple[CdiDevice, ...]) -> dict[str, Any]:
    """Return the content of a spec file. It declares the oldest version of CDI that allows the content."""
    edits = [
        {
            "name": device.name,
            "containerEdits": {"env": [f"{key}={value}" for key, value in device.env.items()], **device.edits},
        }
        for device in devices
    ]
    return {
        "cdiVersion": max(version for device in devices for version in _needed_versions(device)),
        "kind": kind,
        "devices": edits,
    }


def _needed_versions(device: CdiDevice) -> Iterator[str]:
    """Return the version of CDI that introduced each field that this device uses."""
    yield "0.3.0"
    if any("type" in mount for mount in device.edits.get("mounts", ())):
        yield "0.4.0"
    if device.name[0].isdigit() or any("hostPath" in node for node in device.edits.get("deviceNodes", ())):
        yield "0.5.0"
    if "additionalGids" in device.edits:
        yield "0.7.0"


class CdiFolder:
    """The files of this driver in the CDI directory of this node."""

    def __init__(self, folder: Path, driver: str, record: Record = lambda _event, **_facts: None) -> None:
        self.folder, self.driver, self._record = folder, driver, record
        self.kind = f"{driver}/{_CLASS}"

    def path(self, uid: str) -> Path:
        """Return the path of a claim's spec file."""
        return self.folder / f"{self.driver}-{uid}.json"

    def write(self, uid: str, devices: tuple[CdiDevice, ...]) -> None:
        """Write a claim's file, or replace it. Raise ClaimRefused if two different devices have the same name."""
        unique = _distinct(devices)
        # On most nodes the folder does not survive a reboot.
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        write_atomically(self.path(uid), json.dumps(spec(self.kind, unique), indent=1).encode(), 0o644)
        self._record("cdi-write", uid=uid, devices=[device.name.removeprefix(f"{uid}.") for device in unique])

    def remove(self, uid: str) -> bool:
        """Remove a claim's file. Return False if there was none."""
        existed = remove(self.path(uid))
        if existed:
            self._record("cdi-remove", uid=uid)
        return existed

    def remove_all(self) -> int:
        """Remove all files of this driver, like a reboot of a node with the folder in memory. Return how many there were."""
        return sum(self.remove(uid) for uid in self.claims())

    def sweep(self) -> None:
        """Remove unfinished files that a killed process left."""
        remove_unfinished(self.folder, self._uid_in)

    def qualified_name(self, name: str) -> str:
        """Return the CDI ID of a device, which the kubelet passes to the container runtime."""
        return f"{self.kind}={name}"

    def claims(self) -> list[str]:
        """Return the UIDs of the claims that have a file."""
        uids = filter(None, (self._uid_in(path.name) for path in self.folder.glob(f"{self.driver}-*.json")))
        return sorted(uid for uid in uids if self._kind_of(uid) in {self.kind, None})

    def _uid_in(self, name: str) -> str:
        """Return the UID in the name of a file; '' if it is not a file of this driver."""
        uid = name.removeprefix(f"{self.driver}-").removesuffix(".json")
        is_ours = name == self.path(uid).name and matches(UID, uid) and not matches(_LONGER_NAME, uid)
        return uid if is_ours else ""

    def _kind_of(self, uid: str) -> object:
        """Return the kind in a claim's file; None if it cannot be read."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            return json.loads(self.path(uid).read_bytes())["kind"]
        return None

    def rebuild_claim(self, uid: str, node_pool: str) -> PreparedClaim | None:
        """Return a claim with the devices that its file names, for a lost checkpoint; None if there is no file of this driver.

        Raise DamagedFile if the file has unexpected content.
        """
        try:
            content = json.loads(self.path(uid).read_bytes())
            if content["kind"] != self.kind:
                return None
            devices = tuple(_parse_name(uid, device["name"], node_pool) for device in content["devices"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as broken:
            raise DamagedFile(f"the CDI file {self.path(uid)} has unexpected content: {broken!r}") from broken
        return PreparedClaim(ClaimRef(uid), devices)


def _distinct(devices: Iterable[CdiDevice]) -> tuple[CdiDevice, ...]:
    """Return each device once. Raise ClaimRefused if two different devices have the same name."""
    found: dict[str, CdiDevice] = {}
    for device in devices:
        if found.setdefault(device.name, device) != device:
            raise ClaimRefused(f"two different devices of the claim have the CDI name {device.name}")
    return tuple(found.values())


def _parse_name(uid: str, name: str, node_pool: str) -> AllocatedDevice:
    stem, *suffixes = name.split(":")
    owner, *request, device = stem.split(".")
    is_admin = suffixes[-1:] == [_ADMIN]
    pools = [suffix.removeprefix(_POOL).replace("_", "/") for suffix in suffixes[:1] if suffix.startswith(_POOL)]
    shares = suffixes[len(pools) : len(suffixes) - is_admin]
    if owner != uid or not 1 <= len(request) <= 2 or len(shares) > 1:
        raise ValueError(f"{name!r} is not a device of claim {uid}")
    (pool,) = pools or [node_pool]
    return AllocatedDevice("/".join(request), pool, device, is_admin, shares[0] if shares else None)


def _digest(pool: str) -> str:
    return hashlib.sha256(pool.encode()).hexdigest()[:_POOL_LETTERS].upper()


def _variable(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^A-Za-z0-9]", "_", words).upper()


def _text(value: Value) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_text, value))
    if isinstance(value, Version):
        return value.text
    return str(value).lower() if isinstance(value, bool) else str(value)

"""CDI spec files: how the container runtime learns what to put into containers. One file per claim, named by its UID.

Names: the kind is `<driver>/device`; a device is `<claim UID>.<request>[.<subrequest>].<device>[:pool_<pool>][:<share>][:admin]`. Only the
node's own pool is not named. Labels and UIDs have no dots, and no name of Kubernetes has an underscore, which stands for a slash in the
name of a pool: so no two allocations share a name, and each can be read back from it.
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
Note = Callable[..., None]  # Journal.note
_CLASS = "device"
_ADMIN, _POOL = "admin", "pool_"
_SHARE_LETTERS = _POOL_LETTERS = 8
# What follows our name and a hyphen in a file of a driver whose name begins like that: the rest of its name, and a UID of the usual form.
_LONGER_NAME = re.compile(r".+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class CdiDevice:
    """What one allocated device adds to a container: variables, and what its hardware file says beside them, in the words of CDI."""

    name: str
    env: Environment
    edits: Mapping[str, Any] = field(default_factory=dict)


def environment(device: Device, use: AllocatedDevice, home: str) -> dict[str, str]:
    """The variables that tell a container which device it got, and how.

    GPU_DEVICE_GPU_0=gpu-0, GPU_DEVICE_GPU_0_UUID=… and so on; with admin access GPU_DEVICE_GPU_0_ADMIN_ACCESS=true; what configuration
    says of the device, such as GPU_DEVICE_GPU_0_SHARING_STRATEGY=…; and the variables that it names: user_a=b. A share has the start of
    its id in its names, because a container may have two of one device: GPU_DEVICE_GPU_0_SHARE_1F3A5C7E_MEMORY=4Gi. A device of another
    pool than the node's own, `home`, has a digest of the pool's name in its names, because devices of two pools may have one name:
    PORT_DEVICE_PORT_0_IN_B99F26FE=port-0, PORT_DEVICE_PORT_0_IN_B99F26FE_POOL=fabric-ports.
    """
    stem = f"{_variable(device.kind)}_DEVICE_{_variable(device.name)}"
    place: Environment = {}
    if use.pool != home:
        stem = f"{stem}_IN_{_digest(use.pool)}"
        place = {f"{stem}_POOL": use.pool}
    facts = {**device.attributes, **device.capacity}
    said = {_variable(name): _text(facts[name]) for name in sorted(facts)}
    if device.network and device.network.ips:
        said["IPS"] = ",".join(device.network.ips)
    access = {"ADMIN_ACCESS": "true"} if use.admin_access else {}
    told = {f"{stem}_{name}": text for name, text in {**said, **use.facts, **access}.items()}
    return {stem: device.name, **place, **told, **_share(stem, use), **use.variables}


def _share(stem: str, use: AllocatedDevice) -> Environment:
    if use.share_id is None:
        return {}
    name = f"{stem}_SHARE_{_variable(use.share_id[:_SHARE_LETTERS])}"
    return {name: use.share_id, **{f"{name}_{_variable(what)}": use.consumed[what] for what in sorted(use.consumed)}}


def device_name(uid: str, device: AllocatedDevice, home: str) -> str:
    """The CDI name of one allocated device, on a node whose own pool is `home`."""
    name = f"{uid}.{device.request.replace('/', '.')}.{device.device}"
    pool = _POOL + device.pool.replace("/", "_") if device.pool != home else None
    marks = (pool, device.share_id, _ADMIN if device.admin_access else None)
    return ":".join((name, *filter(None, marks)))


def spec(kind: str, devices: tuple[CdiDevice, ...]) -> dict[str, Any]:
    """The content of a spec file; declares the oldest version that allows it."""
    edits = [
        {
            "name": device.name,
            "containerEdits": {"env": [f"{key}={value}" for key, value in device.env.items()], **device.edits},
        }
        for device in devices
    ]
    return {"cdiVersion": max(need for device in devices for need in _needs(device)), "kind": kind, "devices": edits}


def _needs(device: CdiDevice) -> Iterator[str]:
    """The version of CDI that introduced each thing which this device uses."""
    yield "0.3.0"
    if any("type" in mount for mount in device.edits.get("mounts", ())):
        yield "0.4.0"
    if device.name[0].isdigit() or any("hostPath" in node for node in device.edits.get("deviceNodes", ())):
        yield "0.5.0"
    if "additionalGids" in device.edits:
        yield "0.7.0"


class CdiFolder:
    """The CDI directory of this node; touches only the files of this driver."""

    def __init__(self, folder: Path, driver: str, note: Note = lambda _event, **_facts: None) -> None:
        self.folder, self.driver, self._note = folder, driver, note
        self.kind = f"{driver}/{_CLASS}"

    def path(self, uid: str) -> Path:
        """Where a claim's spec file is."""
        return self.folder / f"{self.driver}-{uid}.json"

    def write(self, uid: str, devices: tuple[CdiDevice, ...]) -> None:
        """Write a claim's file, also when it is there. The folder may have gone: on most nodes it does not survive a reboot."""
        unique = _distinct(devices)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        write_atomically(self.path(uid), json.dumps(spec(self.kind, unique), indent=1).encode(), 0o644)
        self._note("cdi-write", uid=uid, devices=[device.name.removeprefix(f"{uid}.") for device in unique])

    def remove(self, uid: str) -> bool:
        """Remove a claim's file; False when there was none."""
        was_there = remove(self.path(uid))
        if was_there:
            self._note("cdi-remove", uid=uid)
        return was_there

    def remove_all(self) -> int:
        """Remove all our files, as a reboot does where the folder is in memory; how many there were."""
        return sum(self.remove(uid) for uid in self.claims())

    def sweep(self) -> None:
        """Remove what a killed process left unfinished."""
        remove_unfinished(self.folder, self._uid_in)

    def qualified_name(self, name: str) -> str:
        """The id that the kubelet hands to the runtime."""
        return f"{self.kind}={name}"

    def claims(self) -> list[str]:
        """The UIDs of the claims that have a file."""
        uids = filter(None, (self._uid_in(path.name) for path in self.folder.glob(f"{self.driver}-*.json")))
        return sorted(uid for uid in uids if self._kind_of(uid) in {self.kind, None})

    def _uid_in(self, name: str) -> str:
        """The claim in the name of a file; '' where the file is not ours."""
        uid = name.removeprefix(f"{self.driver}-").removesuffix(".json")
        is_ours = name == self.path(uid).name and matches(UID, uid) and not matches(_LONGER_NAME, uid)
        return uid if is_ours else ""

    def _kind_of(self, uid: str) -> object:
        """What a file says it is of; None where it does not say it."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            return json.loads(self.path(uid).read_bytes())["kind"]
        return None

    def rebuild_claim(self, uid: str, home: str) -> PreparedClaim | None:
        """The devices that a claim's file names; None when the file is not ours. The last resort where a checkpoint is lost."""
        try:
            content = json.loads(self.path(uid).read_bytes())
            if content["kind"] != self.kind:
                return None
            devices = tuple(_parsed(uid, device["name"], home) for device in content["devices"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as broken:
            raise DamagedFile(f"the CDI file {self.path(uid)} does not say what we once wrote: {broken!r}") from broken
        return PreparedClaim(ClaimRef(uid), devices)


def _distinct(devices: Iterable[CdiDevice]) -> tuple[CdiDevice, ...]:
    """Each once. Two that only have one name would be one for containers."""
    found: dict[str, CdiDevice] = {}
    for device in devices:
        if found.setdefault(device.name, device) != device:
            raise ClaimRefused(f"two devices of the claim have the CDI name {device.name}, and they differ")
    return tuple(found.values())


def _parsed(uid: str, name: str, home: str) -> AllocatedDevice:
    whole, *marks = name.split(":")
    owner, *request, device = whole.split(".")
    is_admin = marks[-1:] == [_ADMIN]
    pools = [mark.removeprefix(_POOL).replace("_", "/") for mark in marks[:1] if mark.startswith(_POOL)]
    shares = marks[len(pools) : len(marks) - is_admin]
    if owner != uid or not 1 <= len(request) <= 2 or len(shares) > 1:
        raise ValueError(f"{name!r} is not a device of claim {uid}")
    (pool,) = pools or [home]
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

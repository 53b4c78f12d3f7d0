"""What was prepared, in one small file per claim, so that it survives this process and can be shared with its successor.

One file per claim: a damaged file costs one claim, and a write costs the same with one claim or a thousand. During a rolling update two
processes work in this folder. The lock makes that safe, and what it holds tells whether the other one wrote: each signs before it does.

Their versions may differ. So all versions keep the outer shape of a file (`version`, `checksum`, `data`), and within its data `ref`, and
of each device `pool`, `device`, `admin_access` and `share_id`. A file of a newer version is never changed or set aside: what all versions
keep is enough to keep its devices from others, and to unprepare it, because all that was made for a claim has its UID for a name.

The disk is waited for when the lock is free again: nobody gets an answer before what it says is lasting, and those who wait at the same
time wait for one commit of the file system.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from fake_driver.atomic_files import remove, remove_unfinished, sync_file, sync_folder, write_atomically
from fake_driver.errors import ClaimRefused, DamagedFile
from fake_driver.name_patterns import UID, matches
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim

# Changes only when older drivers must not read it. What a newer driver merely adds, an older one leaves alone.
VERSION = 1
_SIGNATURE = 16  # bytes
T = TypeVar("T", AllocatedDevice, ClaimRef)
log = logging.getLogger(__name__)
Rebuild = Callable[[str], PreparedClaim | None]


def encode(claim: PreparedClaim) -> bytes:
    """The content of a claim's file."""
    content = {"ref": asdict(claim.ref), "devices": [asdict(device) for device in claim.devices]}
    data = json.dumps({**content, "pod_claim": claim.pod_claim} if claim.pod_claim else content)
    return json.dumps({"version": VERSION, "checksum": _checksum(data), "data": data}).encode()


def decode(content: bytes, uid: str) -> PreparedClaim:
    """The claim that a file holds; Damaged when it is not whole, not ours, or of a version that we do not know."""
    try:
        outer = json.loads(content)
        if outer["version"] != VERSION:
            raise DamagedFile(f"it has version {outer['version']!r}, this driver writes {VERSION}")
        if outer["checksum"] != _checksum(outer["data"]):
            raise DamagedFile("its checksum is wrong")
        inner: dict[str, Any] = json.loads(outer["data"])
        devices = tuple(_made(AllocatedDevice, device) for device in inner["devices"])
        claim = PreparedClaim(_made(ClaimRef, inner["ref"]), devices, str(inner.get("pod_claim", "")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as broken:
        raise DamagedFile(f"it cannot be read: {broken!r}") from broken
    if claim.ref.uid != uid:
        raise DamagedFile(f"it is about claim {claim.ref.uid!r}")
    return claim


def common(content: bytes, uid: str) -> PreparedClaim | None:
    """What a file of a newer version says in words that all versions keep; None when it is not of a newer version, or not whole."""
    try:
        outer = json.loads(content)
        version, data = outer["version"], outer["data"]
        if type(version) is not int or version <= VERSION or outer["checksum"] != _checksum(data):
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    try:
        inner = json.loads(data)
        texts = {key: str(inner["ref"].get(key, "")) for key in ("namespace", "name")}
        devices = tuple(_common_device(device) for device in inner["devices"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as odd:
        log.warning("version %d of the checkpoint of claim %s does not say what it has: %r", version, uid, odd)
        return PreparedClaim(ClaimRef(uid), ())
    return PreparedClaim(ClaimRef(uid, **texts), devices)


def _common_device(content: Mapping[str, Any]) -> AllocatedDevice:
    share = content.get("share_id")
    return AllocatedDevice(
        str(content.get("request", "")),
        str(content["pool"]),
        str(content["device"]),
        content.get("admin_access") is True,
        None if share is None else str(share),
    )


class LockedCheckpoint:
    """The claims that are prepared, while the lock is held."""

    def __init__(
        self, folder: Path, known: dict[str, PreparedClaim], newer: set[str], sign: Callable[[], None]
    ) -> None:
        self._folder, self._known, self._newer, self._sign = folder, known, newer, sign
        self.is_changed = False
        self.not_synced: list[str] = []  # whose files a power cut could still take

    @property
    def claims(self) -> Mapping[str, PreparedClaim]:
        """All of them, by UID."""
        return self._known

    @property
    def from_newer_version(self) -> AbstractSet[str]:
        """The UIDs of those that a newer version of this driver has prepared. They are not complete."""
        return self._newer

    def save(self, claim: PreparedClaim) -> None:
        """Remember a claim; nothing is written when that is known already. What is replaced must not be lost, and waits for the disk."""
        uid = claim.ref.uid
        if uid in self._newer:
            raise ClaimRefused(
                f"claim {claim.ref} was prepared by a newer version of this driver, and this one would spoil it: "
                "try again when the newer one serves, or end the pods that use the claim"
            )
        if self._known.get(uid) != claim:
            self._change()
            path = self._folder / f"{uid}.json"
            is_new = not path.exists()
            write_atomically(path, encode(claim), 0o600, is_durable=not is_new)
            if is_new:
                self.not_synced.append(uid)
            self._known[uid] = claim

    def delete(self, uid: str) -> None:
        """Forget a claim."""
        self._change()
        remove(self._folder / f"{uid}.json", is_durable=False)
        self._known.pop(uid, None)
        self._newer.discard(uid)

    def _change(self) -> None:
        self._sign()
        self.is_changed = True


class Checkpoint:
    """The folder of those files. `rebuild` is asked for a claim whose file is damaged."""

    def __init__(self, folder: Path, rebuild: Rebuild = lambda _uid: None) -> None:
        self._folder, self._rebuild = folder, rebuild
        self._threads = threading.Lock()
        self._seen: dict[str, tuple[int, int]] = {}
        self._known: dict[str, PreparedClaim] = {}
        self._newer: set[str] = set()
        self._last: tuple[bytes, int] | None = None
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextlib.contextmanager
    def locked(self) -> Iterator[LockedCheckpoint]:
        """Lock the checkpoint against other threads and a second process of this driver. What changed is durable afterwards."""
        with self._threads, self._lock_file() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            checkpoint = LockedCheckpoint(self._folder, self._known, self._newer, partial(_sign, lock))
            if self._last != self._state(lock):
                self._refresh(checkpoint)
            self._last = None  # after a failure in the middle, what we know is not to be trusted
            yield checkpoint
            self._last = self._state(lock)
        if checkpoint.is_changed:
            self._settle(checkpoint)

    def _settle(self, checkpoint: LockedCheckpoint) -> None:
        """Wait for the disk; what it refuses to keep is as if it had never been written, so that the next attempt writes it again."""
        try:
            for uid in checkpoint.not_synced:
                sync_file(self._folder / f"{uid}.json")
            sync_folder(self._folder)
        except OSError:
            for uid in checkpoint.not_synced:
                self._withdraw(uid)
            raise

    def _withdraw(self, uid: str) -> None:
        with self._threads:
            remove(self._folder / f"{uid}.json", is_durable=False)
            self._last = None

    def _state(self, lock: BinaryIO) -> tuple[bytes, int]:
        """Differs when somebody else signed, and also when somebody without manners touched the folder."""
        return os.pread(lock.fileno(), _SIGNATURE, 0), self._folder.stat().st_mtime_ns

    def _lock_file(self) -> BinaryIO:
        try:
            return _opened(self._folder / ".lock")
        except FileNotFoundError:
            # Somebody removed the folder under our feet: what is forgotten is forgotten, but life goes on.
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return _opened(self._folder / ".lock")

    def count(self) -> int:
        """How many claims there are, without waiting for whoever works on them."""
        try:
            return sum(path.suffix == ".json" and matches(UID, path.stem) for path in self._folder.iterdir())
        except FileNotFoundError:
            return 0

    def recover(self, uids: list[str]) -> None:
        """Clean up after a killed process, and adopt claims that have a CDI file but no checkpoint, because the folder was lost."""
        with self.locked() as checkpoint:
            remove_unfinished(self._folder)
            for uid in uids:
                claim = None if uid in checkpoint.claims else self._rebuilt(uid)
                if claim:
                    _adopt(claim, checkpoint)

    def _refresh(self, checkpoint: LockedCheckpoint) -> None:
        """Read what is new in the folder, and forget what is gone from it."""
        now = {uid: stamp for uid, stamp in self._stamps() if matches(UID, uid)}
        for uid in self._known.keys() - now.keys():
            del self._known[uid]
            self._newer.discard(uid)
        for uid, stamp in now.items():
            if self._seen.get(uid) != stamp:
                self._read(uid, checkpoint)
        self._seen = now

    def _stamps(self) -> Iterator[tuple[str, tuple[int, int]]]:
        with os.scandir(self._folder) as entries:
            for entry in entries:
                uid, dot, suffix = entry.name.rpartition(".")
                if dot and suffix == "json":
                    status = entry.stat(follow_symlinks=False)
                    yield uid, (status.st_ino, status.st_mtime_ns)

    def _read(self, uid: str, checkpoint: LockedCheckpoint) -> None:
        """Read one claim's file. Whatever is wrong with it is trouble of that claim alone."""
        path = self._folder / f"{uid}.json"
        self._known.pop(uid, None)
        self._newer.discard(uid)
        try:
            self._known[uid] = self._decoded(path.read_bytes(), uid)
        except FileNotFoundError:
            return  # since we looked
        except (DamagedFile, OSError) as damage:
            self._salvage(path, checkpoint, damage)

    def _decoded(self, content: bytes, uid: str) -> PreparedClaim:
        try:
            return decode(content, uid)
        except DamagedFile:
            newer = common(content, uid)
            if newer is None:
                raise
        self._newer.add(uid)
        log.info("claim %s was prepared by a newer version of this driver", newer.ref)
        return newer

    def _salvage(self, path: Path, checkpoint: LockedCheckpoint, damage: Exception) -> None:
        """Set a damaged file aside, for what its claim's CDI file says. What cannot be written is known to this process all the same."""
        claim = self._rebuilt(path.stem)
        aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
        try:
            path.rename(aside)
            if claim:
                _adopt(claim, checkpoint)
        except OSError as refused:
            with contextlib.suppress(OSError):
                aside.rename(path)
            if claim:
                self._known[path.stem] = claim
            log.warning("the checkpoint %s is damaged: %s; it cannot be replaced: %s", path, damage, refused)
        else:
            log.warning("the checkpoint %s is damaged: %s; it was set aside as %s", path, damage, aside.name)

    def _rebuilt(self, uid: str) -> PreparedClaim | None:
        try:
            return self._rebuild(uid)
        except DamagedFile as hopeless:
            log.warning("what claim %s has on this node is not known: %s", uid, hopeless)
            return None


def _adopt(claim: PreparedClaim, checkpoint: LockedCheckpoint) -> None:
    checkpoint.save(claim)
    devices = ", ".join(device.device for device in claim.devices)
    log.warning("claim %s was rebuilt from its CDI file: %s", claim.ref.uid, devices)


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)


def _sign(lock: BinaryIO) -> None:
    os.pwrite(lock.fileno(), secrets.token_bytes(_SIGNATURE), 0)


def _made(kind: type[T], content: Mapping[str, Any]) -> T:
    known = {field.name for field in fields(kind)}
    return kind(**{key: value for key, value in content.items() if key in known})


def _checksum(data: str) -> str:
    return hashlib.sha256(data.encode()).hexdigest()

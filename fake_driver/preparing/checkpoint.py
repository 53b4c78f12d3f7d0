"""The checkpoint: what is prepared on this node, in one small file for each claim. It survives restarts and rolling updates.

With one file for each claim, a damaged file affects one claim, and a write costs the same for any number of claims. During a rolling
update two processes use the folder. A lock serializes them, and a signature in the lock file shows whether the other process has written.

The two processes may have different versions. All versions keep the outer fields of a file (`version`, `checksum`, `data`), and in its
data `ref` and each device's `pool`, `device`, `admin_access` and `share_id`. A file of a newer version is never changed or set aside.
The common fields are enough to keep its devices from other claims and to unprepare it, because all files of a claim have its UID as name.

A process waits for the disk after it has released the lock, and answers no caller before its change is durable. Threads that wait at the
same time share one commit of the file system.
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

# To be changed only if older drivers must not read the files. They ignore fields that a newer driver adds.
VERSION = 1
_SIGNATURE = 16  # bytes
T = TypeVar("T", AllocatedDevice, ClaimRef)
log = logging.getLogger(__name__)
Rebuild = Callable[[str], PreparedClaim | None]


def encode(claim: PreparedClaim) -> bytes:
    """Return the content of a claim's file."""
    content = {"ref": asdict(claim.ref), "devices": [asdict(device) for device in claim.devices]}
    data = json.dumps({**content, "pod_claim": claim.pod_claim} if claim.pod_claim else content)
    return json.dumps({"version": VERSION, "checksum": _checksum(data), "data": data}).encode()


def decode(content: bytes, uid: str) -> PreparedClaim:
    """Return the claim in a file. Raise DamagedFile if it is incomplete, another claim's, or of another version."""
    try:
        outer = json.loads(content)
        if outer["version"] != VERSION:
            raise DamagedFile(f"it has version {outer['version']!r}, this driver writes {VERSION}")
        if outer["checksum"] != _checksum(outer["data"]):
            raise DamagedFile("its checksum is wrong")
        inner: dict[str, Any] = json.loads(outer["data"])
        devices = tuple(_from_known_fields(AllocatedDevice, device) for device in inner["devices"])
        claim = PreparedClaim(_from_known_fields(ClaimRef, inner["ref"]), devices, str(inner.get("pod_claim", "")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as broken:
        raise DamagedFile(f"it cannot be read: {broken!r}") from broken
    if claim.ref.uid != uid:
        raise DamagedFile(f"it is about claim {claim.ref.uid!r}")
    return claim


def decode_newer(content: bytes, uid: str) -> PreparedClaim | None:
    """Return the claim in a file of a newer version, with the common fields only; None if the file is not newer or is incomplete."""
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
        devices = tuple(_device_from_common_fields(device) for device in inner["devices"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as odd:
        log.warning("the checkpoint of claim %s has version %d, but not the common fields: %r", uid, version, odd)
        return PreparedClaim(ClaimRef(uid), ())
    return PreparedClaim(ClaimRef(uid, **texts), devices)


def _device_from_common_fields(content: Mapping[str, Any]) -> AllocatedDevice:
    share = content.get("share_id")
    return AllocatedDevice(
        str(content.get("request", "")),
        str(content["pool"]),
        str(content["device"]),
        content.get("admin_access") is True,
        None if share is None else str(share),
    )


class LockedCheckpoint:
    """The prepared claims, which can be changed while the lock is held."""

    def __init__(
        self, folder: Path, known: dict[str, PreparedClaim], newer: set[str], sign: Callable[[], None]
    ) -> None:
        self._folder, self._known, self._newer, self._sign = folder, known, newer, sign
        self.is_changed = False
        self.not_synced: list[str] = []  # UIDs of new files that a power cut could still remove

    @property
    def claims(self) -> Mapping[str, PreparedClaim]:
        """Return all claims by UID."""
        return self._known

    @property
    def from_newer_version(self) -> AbstractSet[str]:
        """Return the UIDs of claims that a newer version of this driver has prepared. They only have the common fields."""
        return self._newer

    def save(self, claim: PreparedClaim) -> None:
        """Write the claim's file unless it is unchanged. A file that is replaced is synced at once, so that its old content is not lost."""
        uid = claim.ref.uid
        if uid in self._newer:
            raise ClaimRefused(
                f"claim {claim.ref} was prepared by a newer version of this driver, whose checkpoint this one must not change: "
                "wait for the newer version to run, or delete the pods that use the claim"
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
        """Remove the claim's file."""
        self._change()
        remove(self._folder / f"{uid}.json", is_durable=False)
        self._known.pop(uid, None)
        self._newer.discard(uid)

    def _change(self) -> None:
        self._sign()
        self.is_changed = True


class Checkpoint:
    """The folder of the files. `rebuild` returns a claim whose file is damaged or lost; None if it does not know it."""

    def __init__(self, folder: Path, rebuild: Rebuild = lambda _uid: None) -> None:
        self._folder, self._rebuild = folder, rebuild
        self._thread_lock = threading.Lock()
        self._read_stamps: dict[str, tuple[int, int]] = {}
        self._known: dict[str, PreparedClaim] = {}
        self._newer: set[str] = set()
        self._last_state: tuple[bytes, int] | None = None
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextlib.contextmanager
    def locked(self) -> Iterator[LockedCheckpoint]:
        """Lock the checkpoint against other threads and a second process of this driver. What changed is durable afterwards."""
        with self._thread_lock, self._lock_file() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            checkpoint = LockedCheckpoint(self._folder, self._known, self._newer, partial(_sign, lock))
            if self._last_state != self._state(lock):
                self._refresh(checkpoint)
            self._last_state = None  # after an exception, the files must be read again
            yield checkpoint
            self._last_state = self._state(lock)
        if checkpoint.is_changed:
            self._sync(checkpoint)

    def _sync(self, checkpoint: LockedCheckpoint) -> None:
        """Wait for the disk. If that fails, discard new files, so that the next attempt writes them again."""
        try:
            for uid in checkpoint.not_synced:
                sync_file(self._folder / f"{uid}.json")
            sync_folder(self._folder)
        except OSError:
            for uid in checkpoint.not_synced:
                self._discard(uid)
            raise

    def _discard(self, uid: str) -> None:
        with self._thread_lock:
            remove(self._folder / f"{uid}.json", is_durable=False)
            self._last_state = None

    def _state(self, lock: BinaryIO) -> tuple[bytes, int]:
        """Return the signature and time of the folder, which differ if another process has written or removed files."""
        return os.pread(lock.fileno(), _SIGNATURE, 0), self._folder.stat().st_mtime_ns

    def _lock_file(self) -> BinaryIO:
        try:
            return _opened(self._folder / ".lock")
        except FileNotFoundError:
            # The folder was removed while the driver runs; new claims can still be prepared.
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return _opened(self._folder / ".lock")

    def count(self) -> int:
        """Return the number of claims without waiting for the lock."""
        try:
            return sum(path.suffix == ".json" and matches(UID, path.stem) for path in self._folder.iterdir())
        except FileNotFoundError:
            return 0

    def recover(self, uids: list[str]) -> None:
        """Remove unfinished files, and rebuild claims with these UIDs that have a CDI file but no checkpoint."""
        with self.locked() as checkpoint:
            remove_unfinished(self._folder)
            for uid in uids:
                claim = None if uid in checkpoint.claims else self._try_to_rebuild(uid)
                if claim:
                    _adopt(claim, checkpoint)

    def _refresh(self, checkpoint: LockedCheckpoint) -> None:
        """Read files that are new or changed, and drop claims whose file was removed."""
        now = {uid: stamp for uid, stamp in self._stamps() if matches(UID, uid)}
        for uid in self._known.keys() - now.keys():
            del self._known[uid]
            self._newer.discard(uid)
        for uid, stamp in now.items():
            if self._read_stamps.get(uid) != stamp:
                self._read(uid, checkpoint)
        self._read_stamps = now

    def _stamps(self) -> Iterator[tuple[str, tuple[int, int]]]:
        with os.scandir(self._folder) as entries:
            for entry in entries:
                uid, dot, suffix = entry.name.rpartition(".")
                if dot and suffix == "json":
                    status = entry.stat(follow_symlinks=False)
                    yield uid, (status.st_ino, status.st_mtime_ns)

    def _read(self, uid: str, checkpoint: LockedCheckpoint) -> None:
        """Read one claim's file. An error affects that claim only."""
        path = self._folder / f"{uid}.json"
        self._known.pop(uid, None)
        self._newer.discard(uid)
        try:
            self._known[uid] = self._decoded(path.read_bytes(), uid)
        except FileNotFoundError:
            return  # removed meanwhile
        except (DamagedFile, OSError) as damage:
            self._set_aside(path, checkpoint, damage)

    def _decoded(self, content: bytes, uid: str) -> PreparedClaim:
        try:
            return decode(content, uid)
        except DamagedFile:
            newer = decode_newer(content, uid)
            if newer is None:
                raise
        self._newer.add(uid)
        log.info("claim %s was prepared by a newer version of this driver", newer.ref)
        return newer

    def _set_aside(self, path: Path, checkpoint: LockedCheckpoint, damage: Exception) -> None:
        """Rename a damaged file and rebuild its claim from the CDI file. If that cannot be written, keep the claim in memory."""
        claim = self._try_to_rebuild(path.stem)
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

    def _try_to_rebuild(self, uid: str) -> PreparedClaim | None:
        try:
            return self._rebuild(uid)
        except DamagedFile as damage:
            log.warning("claim %s has no checkpoint and cannot be rebuilt: %s", uid, damage)
            return None


def _adopt(claim: PreparedClaim, checkpoint: LockedCheckpoint) -> None:
    checkpoint.save(claim)
    devices = ", ".join(device.device for device in claim.devices)
    log.warning("claim %s was rebuilt from its CDI file: %s", claim.ref.uid, devices)


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)


def _sign(lock: BinaryIO) -> None:
    os.pwrite(lock.fileno(), secrets.token_bytes(_SIGNATURE), 0)


def _from_known_fields(kind: type[T], content: Mapping[str, Any]) -> T:
    known = {field.name for field in fields(kind)}
    return kind(**{key: value for key, value in content.items() if key in known})


def _checksum(data: str) -> str:
    return hashlib.sha256(data.encode()).hexdigest()

import errno
import hashlib
import json
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_driver.errors import ClaimRefused, DamagedFile
from fake_driver.preparing.checkpoint import Checkpoint, decode, encode
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef, PreparedClaim


def claim(uid: str = "aa", *devices: str) -> PreparedClaim:
    return PreparedClaim(
        ClaimRef(uid, "default", "one"), tuple(AllocatedDevice("gpu", "worker", name) for name in devices)
    )


def keep(checkpoint: Checkpoint, *claims: PreparedClaim) -> None:
    with checkpoint.locked() as locked:
        for one in claims:
            locked.save(one)


def known(checkpoint: Checkpoint) -> dict[str, PreparedClaim]:
    with checkpoint.locked() as locked:
        return dict(locked.claims)


texts = st.text(max_size=8)
facts = st.dictionaries(texts, texts, max_size=2)
devices = st.builds(AllocatedDevice, texts, texts, texts, st.booleans(), st.none() | texts, facts, facts)
claims = st.builds(PreparedClaim, st.builds(ClaimRef, texts, texts, texts), st.lists(devices, max_size=3).map(tuple))


@given(claims)
def test_a_claim_is_decoded_as_it_was_encoded(one: PreparedClaim) -> None:
    assert decode(encode(one), one.ref.uid) == one


@given(claims, st.data())
def test_every_damage_is_detected(one: PreparedClaim, data: st.DataObject) -> None:
    whole = encode(one)
    position = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != whole[position]))
    for damaged in (whole[:position], whole[:position] + bytes([byte]) + whole[position + 1 :]):
        try:
            assert (
                decode(damaged, one.ref.uid) == one
            )  # another spelling of the same, such as a space that became a tab
        except DamagedFile:
            continue


@given(
    st.binary(max_size=60)
    | st.recursive(st.none() | st.integers() | texts, st.lists).map(lambda value: json.dumps(value).encode())
)
def test_any_other_content_is_damaged(content: bytes) -> None:
    with pytest.raises(DamagedFile):
        decode(content, "aa")


def test_a_file_of_a_newer_version_is_not_decoded() -> None:
    newer = json.dumps({**json.loads(encode(claim())), "version": 2}).encode()
    with pytest.raises(DamagedFile, match="it has version 2, this driver writes 1"):
        decode(newer, "aa")


def test_fields_that_a_newer_driver_added_are_ignored() -> None:
    inner = {
        "ref": {"uid": "aa", "zone": "z"},
        "devices": [{"request": "r", "pool": "p", "device": "d", "color": "red"}],
        "x": 1,
    }
    data = json.dumps(inner)
    text = json.dumps({"version": 1, "checksum": hashlib.sha256(data.encode()).hexdigest(), "data": data})
    assert decode(text.encode(), "aa") == PreparedClaim(ClaimRef("aa"), (AllocatedDevice("r", "p", "d"),))


def test_all_fields_of_a_claim_are_encoded() -> None:
    share = AllocatedDevice("r", "p", "d", share_id="s", consumed={"memory": "4Gi"})
    whole = PreparedClaim(ClaimRef("aa", "default", "one"), (share,), "mine")
    assert decode(encode(whole), "aa") == whole


def test_a_claim_survives_a_restart(tmp_path: Path) -> None:
    keep(Checkpoint(tmp_path), claim("aa", "gpu-0"), claim("bb", "gpu-1"))
    after = Checkpoint(tmp_path)
    with after.locked() as locked:
        locked.delete("aa")
        locked.delete("never-saved")
    assert known(Checkpoint(tmp_path)) == {"bb": claim("bb", "gpu-1")}


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    keep(Checkpoint(tmp_path / "claims"), claim())
    assert (tmp_path / "claims").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "claims/aa.json").stat().st_mode & 0o777 == 0o600


def test_two_processes_see_what_the_other_writes(tmp_path: Path) -> None:
    old, new = Checkpoint(tmp_path), Checkpoint(tmp_path)
    keep(old, claim("aa", "gpu-0"))
    assert known(new) == {"aa": claim("aa", "gpu-0")}
    keep(new, claim("aa", "gpu-1"))
    assert known(old) == {"aa": claim("aa", "gpu-1")}
    with old.locked() as locked:
        locked.delete("aa")
    assert known(new) == {}


def test_a_write_of_the_other_process_is_seen_within_the_same_clock_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Checkpoint, "_stamps", still_clock(Checkpoint._stamps))
    monkeypatch.setattr(Checkpoint, "_state", lambda self, lock: (os.pread(lock.fileno(), 16, 0), 0))
    old, new = Checkpoint(tmp_path), Checkpoint(tmp_path)
    keep(old, claim("aa", "gpu-0"))
    assert known(new) == {"aa": claim("aa", "gpu-0")}
    keep(new, claim("bb", "gpu-1"))
    assert set(known(old)) == {"aa", "bb"}


def still_clock(really: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def stamps(self: Checkpoint) -> Iterator[Any]:
        return ((uid, (inode, 0)) for uid, (inode, _) in really(self))

    return stamps


def test_files_are_not_read_again_while_no_other_process_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path)
    keep(checkpoint, claim("aa"))
    monkeypatch.setattr(Checkpoint, "_stamps", lambda _self: pytest.fail("it read the folder"))
    keep(checkpoint, claim("bb"))
    assert set(known(checkpoint)) == {"aa", "bb"}


def test_after_a_failed_change_the_files_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Checkpoint(tmp_path)
    with pytest.raises(AttributeError):
        keep(checkpoint, claim("aa"), "broken")  # type: ignore[arg-type]  # what fails in the middle
    assert known(checkpoint) == {"aa": claim("aa")}


def test_the_lock_is_free_while_a_thread_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Checkpoint(tmp_path)
    both_wait = threading.Barrier(2, timeout=20)
    monkeypatch.setattr("fake_driver.preparing.checkpoint.sync_file", lambda _path: both_wait.wait())
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda uid: keep(checkpoint, claim(uid)), ["aa", "bb"]))
    assert set(known(checkpoint)) == {"aa", "bb"}


def test_a_change_is_on_disk_before_it_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lasting: list[str] = []
    monkeypatch.setattr("fake_driver.preparing.checkpoint.sync_file", lambda path: lasting.append(path.name))
    monkeypatch.setattr("fake_driver.preparing.checkpoint.sync_folder", lambda folder: lasting.append(folder.name))
    checkpoint = Checkpoint(tmp_path / "claims")
    keep(checkpoint, claim("aa"), claim("bb"))
    assert lasting == ["aa.json", "bb.json", "claims"]
    with checkpoint.locked() as locked:
        locked.delete("aa")
    assert lasting[3:] == ["claims"]


def test_new_content_is_on_disk_before_it_replaces_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Checkpoint(tmp_path)
    keep(checkpoint, claim("aa", "gpu-0"))
    contents_at_sync: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda _handle: contents_at_sync.append((tmp_path / "aa.json").read_bytes()))
    keep(checkpoint, claim("aa", "gpu-1"))
    assert decode(contents_at_sync[0], "aa") == claim("aa", "gpu-0")


def test_a_claim_that_cannot_be_synced_is_discarded_and_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    checkpoint = Checkpoint(tmp_path)
    keep(checkpoint, claim("aa"))
    with monkeypatch.context() as patched:
        patched.setattr("fake_driver.preparing.checkpoint.sync_file", broken)
        with pytest.raises(OSError, match="Input/output error"):
            keep(checkpoint, claim("bb"))
    assert known(checkpoint) == {"aa": claim("aa")}
    keep(checkpoint, claim("bb"))
    assert set(known(Checkpoint(tmp_path))) == {"aa", "bb"}


def test_a_removed_folder_is_created_again(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "claims")
    keep(checkpoint, claim("aa"))
    shutil.rmtree(tmp_path / "claims")
    assert known(checkpoint) == {}
    keep(checkpoint, claim("bb"))
    assert set(known(Checkpoint(tmp_path / "claims"))) == {"bb"}


steps = st.tuples(st.integers(0, 1), st.booleans(), st.sampled_from(["aa", "bb", "cc"]), st.sampled_from(["x", "y"]))


@settings(max_examples=30, deadline=None)  # it waits for the disk
@given(st.lists(steps, max_size=12))
def test_two_processes_always_know_the_same_claims(tmp_path_factory: pytest.TempPathFactory, some: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("shared")
    both, expected = (Checkpoint(folder), Checkpoint(folder)), {}
    for who, keeps, uid, device in some:
        if keeps:
            keep(both[who], claim(uid, device))
            expected[uid] = claim(uid, device)
        else:
            with both[who].locked() as locked:
                locked.delete(uid)
            expected.pop(uid, None)
        assert known(both[1 - who]) == expected
    assert known(Checkpoint(folder)) == expected


def test_many_threads_of_two_processes_lose_nothing(tmp_path: Path) -> None:
    both = Checkpoint(tmp_path), Checkpoint(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: keep(both[number % 2], claim(f"c{number}")), range(40)))
    assert len(known(Checkpoint(tmp_path))) == 40


def test_an_unchanged_claim_is_not_written_again(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    keep(checkpoint, claim())
    before = (tmp_path / "aa.json").stat().st_ino
    keep(checkpoint, claim())
    assert (tmp_path / "aa.json").stat().st_ino == before


@pytest.mark.parametrize("damage", [b"", b"{", b"null", b'{"version": 9}'])
def test_a_damaged_file_is_set_aside_rebuilt_and_logged(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    keep(Checkpoint(tmp_path), claim("aa", "gpu-0"), claim("bb", "gpu-1"))
    (tmp_path / "aa.json").write_bytes(damage)
    rebuilt = Checkpoint(tmp_path, lambda uid: claim(uid, "gpu-7"))
    assert known(rebuilt) == {"aa": claim("aa", "gpu-7"), "bb": claim("bb", "gpu-1")}
    (aside,) = tmp_path.glob("aa.json.damaged-*")
    assert aside.read_bytes() == damage
    assert "is damaged" in caplog.text
    assert "was rebuilt" in caplog.text
    assert known(Checkpoint(tmp_path)) == known(rebuilt)


def written(version: Any = 2, data: Any = None, **outer: Any) -> bytes:
    """Return a complete file of another version."""
    text = json.dumps(json.loads(json.loads(encode(claim("aa", "gpu-0")))["data"]) if data is None else data)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({"version": version, "checksum": checksum, "data": text, **outer}).encode()


def test_a_claim_of_a_newer_version_keeps_its_devices_and_its_file(tmp_path: Path) -> None:
    new = {
        "ref": {"uid": "aa", "name": "one", "namespace": "default", "zone": 3},
        "devices": [{"pool": "worker", "device": "gpu-0", "share_id": "s", "admin_access": True, "request": ["odd"]}],
        "more": {},
    }
    old = Checkpoint(tmp_path, lambda uid: pytest.fail("it was rebuilt"))
    keep(old, claim("bb", "gpu-1"))
    (tmp_path / "aa.json").write_bytes(written(2, new))
    held = AllocatedDevice("['odd']", "worker", "gpu-0", True, "s")
    expected = {"aa": PreparedClaim(ClaimRef("aa", "default", "one"), (held,)), "bb": claim("bb", "gpu-1")}
    assert known(old) == expected
    with pytest.raises(
        ClaimRefused, match=r"default/one \(aa\) was prepared by a newer version .* wait for the newer version to run"
    ):
        keep(old, claim("aa", "gpu-2"))
    with pytest.raises(ClaimRefused, match="newer version"):
        keep(old, expected["aa"])
    assert known(old) == known(Checkpoint(tmp_path)) == expected
    assert (tmp_path / "aa.json").read_bytes() == written(2, new)
    assert not list(tmp_path.glob("*.damaged-*"))


def test_a_claim_of_a_newer_version_can_be_deleted_and_saved_again(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    (tmp_path / "aa.json").write_bytes(written())
    with checkpoint.locked() as locked:
        assert locked.from_newer_version == {"aa"}
        locked.delete("aa")
        locked.save(claim("aa", "gpu-1"))
        assert locked.from_newer_version == set()
    assert known(Checkpoint(tmp_path)) == {"aa": claim("aa", "gpu-1")}


def test_a_claim_that_the_newer_process_deletes_or_an_older_one_writes_is_no_longer_newer(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    for content in (None, encode(claim("aa", "gpu-3"))):
        (tmp_path / "aa.json").write_bytes(written())
        assert list(known(checkpoint)) == ["aa"]
        (tmp_path / "aa.json").unlink()
        if content:
            (tmp_path / "aa.json").write_bytes(content)
        with checkpoint.locked() as locked:
            assert locked.from_newer_version == set()
            assert len(locked.claims) == bool(content)


@pytest.mark.parametrize("data", [[], {"ref": {}}, {"ref": {}, "devices": [{"pool": "p"}]}, 7])
def test_a_file_of_a_newer_version_without_the_common_fields_is_kept(tmp_path: Path, data: Any) -> None:
    (tmp_path / "aa.json").write_bytes(written(3, data))
    assert known(Checkpoint(tmp_path)) == {"aa": PreparedClaim(ClaimRef("aa"), ())}
    assert (tmp_path / "aa.json").exists()


@pytest.mark.parametrize("content", [written(2, checksum="x"), written(0), written("2"), written(2, data=None)[:-9]])
def test_an_incomplete_or_older_file_is_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "aa.json").write_bytes(content)
    assert known(Checkpoint(tmp_path)) == {}
    assert len(list(tmp_path.glob("aa.json.damaged-*"))) == 1


def test_an_unreadable_file_does_not_fail_calls_for_other_claims(tmp_path: Path) -> None:
    keep(Checkpoint(tmp_path), claim("bb", "gpu-1"))
    (tmp_path / "aa.json").mkdir()
    (tmp_path / "cc.json").symlink_to(tmp_path / "nowhere")
    checkpoint = Checkpoint(tmp_path, lambda uid: claim(uid, "gpu-0"))
    assert known(checkpoint) == {"aa": claim("aa", "gpu-0"), "bb": claim("bb", "gpu-1")}
    assert [path.is_dir() for path in tmp_path.glob("aa.json.damaged-*")] == [True]
    keep(checkpoint, claim("dd", "gpu-2"))
    assert (
        known(checkpoint)
        == known(Checkpoint(tmp_path))
        == {uid: claim(uid, f"gpu-{number}") for number, uid in enumerate(["aa", "bb", "dd"])}
    )


def test_a_damaged_file_that_cannot_be_replaced_stays_and_its_devices_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    checkpoint = Checkpoint(tmp_path, lambda uid: claim(uid, "gpu-0"))
    (tmp_path / "aa.json").write_text("?")
    with monkeypatch.context() as patched:
        patched.setattr("fake_driver.preparing.checkpoint.write_atomically", full)
        assert known(checkpoint) == {"aa": claim("aa", "gpu-0")}
    assert (tmp_path / "aa.json").read_text() == "?"
    assert "it cannot be replaced" in caplog.text
    keep(Checkpoint(tmp_path, lambda uid: claim(uid, "gpu-0")), claim("bb", "gpu-1"))
    assert known(checkpoint) == {"aa": claim("aa", "gpu-0"), "bb": claim("bb", "gpu-1")}


def test_a_claim_that_cannot_be_rebuilt_is_logged_and_harms_no_other_claim(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def hopeless(uid: str) -> PreparedClaim:
        raise DamagedFile(f"nothing is known of {uid}")

    keep(Checkpoint(tmp_path), claim("aa"), claim("bb"))
    (tmp_path / "aa.json").write_text("?")
    assert list(known(Checkpoint(tmp_path, hopeless))) == ["bb"]
    assert "nothing is known of aa" in caplog.text


def test_a_lost_folder_is_rebuilt_from_the_claims_that_have_cdi_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    keep(Checkpoint(tmp_path), claim("aa", "gpu-0"))
    checkpoint = Checkpoint(tmp_path, lambda uid: claim(uid, "gpu-1"))
    (tmp_path / ".bb.json.unfinished").touch()
    checkpoint.recover(["aa", "bb"])
    assert known(checkpoint) == {"aa": claim("aa", "gpu-0"), "bb": claim("bb", "gpu-1")}
    assert "claim bb was rebuilt from its CDI file: gpu-1" in caplog.text
    assert not list(tmp_path.glob(".*.unfinished"))


def test_a_file_that_is_removed_while_files_are_counted_does_not_make_the_count_zero(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    keep(checkpoint, claim())
    (tmp_path / "gone.json").symlink_to(
        tmp_path / "nowhere"
    )  # its name is still listed, but there is no file behind it
    (tmp_path / "x.json.damaged-1").touch()
    assert checkpoint.count() == 2

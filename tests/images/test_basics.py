from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed import process
from testbed.images import basics, sandbox, workload
from testbed.progress import Silent
from testbed.waiting import Budget, eventually_true


def test_the_sandbox_image_contains_only_busybox_and_waits_for_a_signal(
    packaged_busybox: list[str], progress: Silent, read_archive: Callable[[Path], Any], tmp_path: Path
) -> None:
    image = sandbox(progress)
    parts = read_archive(image.archive)

    assert image.reference == "localhost/dra-testbed/sandbox:1"
    assert image.digest == parts.json("index.json")["manifests"][0]["digest"]
    assert parts.config["config"]["Entrypoint"] == ["/bin/busybox", "sh", "-c", basics.PAUSE]
    assert sorted(parts.layer(0, tmp_path)) == ["bin", "bin/busybox"]


def test_the_workload_image_has_applets_users_and_a_tmp_folder(
    packaged_busybox: list[str], progress: Silent, read_archive: Callable[[Path], Any], tmp_path: Path
) -> None:
    image = workload(progress)
    layer = read_archive(image.archive).layer(0, tmp_path)

    assert image.reference == "localhost/dra-testbed/workload:1"
    assert {name: layer[f"bin/{name}"].linkname for name in ("cat", "sh", "sleep")} == dict.fromkeys(
        ("cat", "sh", "sleep"), "busybox"
    )
    assert layer["bin/busybox"].mode == 0o755
    assert layer["tmp"].mode == 0o1777
    assert layer["usr/bin"].linkname == "../bin"
    assert "etc/passwd" in layer
    assert "PATH=" + basics.PATH in read_archive(image.archive).config["config"]["Env"]


def test_the_sandbox_ends_at_once_on_sigterm(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    body = basics.PAUSE.replace("/bin/busybox sleep infinity &", f"sleep infinity & echo $! > {ready};")
    sandbox_like = process.start(["sh", "-c", body], log=tmp_path / "log")
    try:
        assert eventually_true(lambda: ready.exists() and ready.read_text() != "", Budget("start", 10, "a shell"))
        process.kill(sandbox_like, grace=5)
        assert (tmp_path / "log").read_text() == ""
        assert not process.alive(sandbox_like)
    finally:
        left = process.ProcessId.of(int(ready.read_text()))
        if left:
            process.kill(left)


def test_the_trap_of_the_sandbox_handles_sigterm(tmp_path: Path) -> None:
    done = process.run(["sh", "-c", f"kill -{signal.SIGTERM.name[3:]} $$; exit 3"], check=False)
    trapped = process.run(
        ["sh", "-c", basics.PAUSE.replace("while", "kill -TERM $$; while", 1)], check=False, timeout=10
    )

    assert (done.code, trapped.code) == (-signal.SIGTERM, 0)


def test_both_images_are_built_once(packaged_busybox: list[str], progress: Silent) -> None:
    first = [sandbox(progress), workload(progress)]
    again = [sandbox(progress), workload(progress)]

    assert first == again
    assert packaged_busybox == ["busybox-static", "busybox-static"]
    assert len(progress.steps) == 2


@pytest.mark.parametrize("make", [sandbox, workload])
def test_another_cache_gets_the_same_bytes(
    make: Callable[[Silent], Any],
    packaged_busybox: list[str],
    progress: Silent,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = make(progress)
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "elsewhere"))
    there = make(progress)

    assert here.archive != there.archive
    assert here.archive.read_bytes() == there.archive.read_bytes()


def test_a_changed_recipe_has_another_key() -> None:
    changed = basics.Recipe("sandbox", 1, basics.SANDBOX.settings, basics.WORKLOAD.members)

    assert changed.key != basics.SANDBOX.key

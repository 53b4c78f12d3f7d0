"""The OCI runtime that removes what this host lacks, and then executes runc."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.process import Completed, run
from testbed.providers.kind import runtime

KINDS = ("bounding", "effective", "inheritable", "permitted", "ambient")
# A host whose root lacks CAP_SYS_RESOURCE, number 24.
STATUS = "Name:\tpython3\nCapEff:\t0000000000000000\nCapBnd:\t000001fffeffffff\nSeccomp:\t0\n"
MISSING = {"CAP_SYS_RESOURCE"}


def process(**more: Any) -> dict[str, Any]:
    names = ["CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_SYS_ADMIN"]
    return {"args": ["echo", "CAP_SYS_RESOURCE"], "capabilities": {kind: list(names) for kind in KINDS}, **more}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    folder.mkdir()
    config = {"ociVersion": "1.0.2", "process": process(oomScoreAdj=-500), "linux": {"limit": 2**64 - 1}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def runc(tmp_path: Path) -> Path:
    """Return a fake runc that records its arguments and its configuration."""
    program = tmp_path / "fake" / "runc"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/said\ncp {tmp_path}/bundle/config.json {tmp_path}/seen\nexit 7\n'
    )
    program.chmod(0o755)
    return program


def on_this_host(words: list[str], **env: str) -> Completed:
    argv = [sys.executable, "-IS", runtime.__file__, *words]
    return run(argv, env={"PATH": os.environ["PATH"], **env}, check=False)


def test_missing_capabilities_are_read_from_the_bounding_set() -> None:
    assert runtime.missing_capabilities(STATUS) == {"CAP_SYS_RESOURCE"}


def test_an_ordinary_host_has_all_capabilities() -> None:
    assert runtime.missing_capabilities("CapBnd:\t000001ffffffffff\n") == set()


def test_the_numbers_of_capabilities_are_those_of_the_kernel() -> None:
    assert [runtime.CAPABILITIES.index(f"CAP_{name}") for name in ("CHOWN", "SYS_ADMIN", "SYS_RESOURCE", "BPF")] == [
        0,
        21,
        24,
        39,
    ]


def test_a_capability_is_removed_from_all_five_sets_and_nowhere_else() -> None:
    fitted = runtime.fit(process(cwd="/"), MISSING, score=0)

    assert fitted == process(cwd="/", capabilities={kind: ["CAP_CHOWN", "CAP_SYS_ADMIN"] for kind in KINDS})


def test_a_process_without_capabilities_is_not_changed() -> None:
    assert runtime.fit({"args": ["true"], "capabilities": None}, MISSING, 0) == {"args": ["true"], "capabilities": None}


@pytest.mark.parametrize(
    ("missing", "wanted", "own", "given"),
    [(MISSING, -500, 100, 100), (MISSING, 500, 100, 500), (set(), -500, 100, -500), ({"CAP_BPF"}, -500, 100, -500)],
    ids=["raised to our own", "high enough", "nothing missing", "another missing"],
)
def test_the_oom_score_is_raised_only_if_necessary(missing: set[str], wanted: int, own: int, given: int) -> None:
    assert runtime.fit({"oomScoreAdj": wanted}, missing, own)["oomScoreAdj"] == given


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("create --bundle /b id", "/b/config.json"),
        ("create --bundle=/b id", "/b/config.json"),
        ("run -b /b --detach id", "/b/config.json"),
        ("--root /r --log /l --log-format json --systemd-cgroup create --bundle /b --pid-file /p id", "/b/config.json"),
        ("--root=/r --debug run --no-pivot --keep --preserve-fds 2 -b /b id", "/b/config.json"),
        ("create id", "config.json"),
        ("--log /l exec --process /p --detach --pid-file /f id", "/p"),
        ("exec -d -p /p id", "/p"),
        ("exec -t --user 0 id ls -p /no", None),
        ("--root create delete --force id", None),
        ("kill --all id 9", None),
        ("--version", None),
        ("", None),
    ],
)
def test_the_file_is_found_behind_every_kind_of_option(line: str, file: str | None) -> None:
    assert runtime.file_to_fit(line.split()) == (Path(file) if file else None)


def test_a_bundle_is_rewritten_as_a_whole_and_keeps_its_mode(bundle: Path) -> None:
    file = bundle / "config.json"
    file.chmod(0o640)
    before = json.loads(file.read_text())

    runtime.fit_file(file, MISSING)

    after = json.loads(file.read_text())
    assert after["process"]["capabilities"]["ambient"] == ["CAP_CHOWN", "CAP_SYS_ADMIN"]
    assert {**after, "process": None} == {**before, "process": None}
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(bundle.iterdir()) == [file]


def test_the_file_of_an_exec_is_the_process_itself(tmp_path: Path) -> None:
    file = tmp_path / "process.json"
    file.write_text(json.dumps(process()))

    runtime.fit_file(file, MISSING)

    assert json.loads(file.read_text())["capabilities"]["bounding"] == ["CAP_CHOWN", "CAP_SYS_ADMIN"]


@pytest.mark.parametrize("text", [None, "{not json"], ids=["absent", "broken"])
def test_a_file_that_cannot_be_read_is_left_to_runc(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "config.json"
    if text:
        file.write_text(text)

    runtime.fit_file(file, MISSING)

    assert (file.read_text() if file.exists() else None) == text


def test_runc_gets_all_arguments_and_its_exit_code_is_returned(tmp_path: Path, bundle: Path, runc: Path) -> None:
    words = ["--log", "/a b", "create", "--bundle", str(bundle), "id"]

    done = on_this_host(words, DRA_TESTBED_RUNC=str(runc))

    assert (done.code, done.stdout + done.stderr) == (7, "")
    assert (tmp_path / "said").read_text().splitlines() == words


def test_runc_gets_a_configuration_that_this_host_permits(tmp_path: Path, bundle: Path, runc: Path) -> None:
    before = json.loads((bundle / "config.json").read_text())
    missing = runtime.missing_capabilities(Path("/proc/self/status").read_text())

    on_this_host(["create", "--bundle", str(bundle), "id"], PATH=f"{runc.parent}:{os.environ['PATH']}")

    own = int(Path("/proc/self/oom_score_adj").read_text())
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen == {**before, "process": runtime.fit(before["process"], missing, own)}


def test_a_missing_runc_is_an_error(tmp_path: Path) -> None:
    done = on_this_host(["list"], PATH=str(tmp_path))

    assert done.code == 1
    assert "cannot execute runc" in done.stderr
    assert "DRA_TESTBED_RUNC" in done.stderr


def test_the_file_itself_can_be_configured_as_a_runtime(runc: Path, bundle: Path) -> None:
    done = run([runtime.__file__, "list"], env={**os.environ, "DRA_TESTBED_RUNC": str(runc)}, check=False)

    assert done.code == 7

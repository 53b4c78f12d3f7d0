"""What a host needs for nodes that are containers. An engine outside of it is not checked."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from testbed.providers import inotify
from testbed.providers.kind import checks
from testbed.providers.kind.engine import Engine
from tests.providers.kind.conftest import FakeEngine

DOCKER = Engine("docker")


@pytest.fixture
def poor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "lacks_sys_resource", lambda: True)


def answers(runtime: str, host: str) -> str:
    return f"*DefaultRuntime*) echo {runtime};;\n*.Name*) echo {host};;"


@pytest.mark.usefixtures("poor")
@pytest.mark.parametrize("host", [socket.gethostname(), ""])
def test_a_host_whose_root_lacks_a_capability_needs_the_wrapper(fake_engine: FakeEngine, host: str) -> None:
    fake_engine(answers("runc", host))

    (problem,) = checks.missing_capability(DOCKER)

    assert "CAP_SYS_RESOURCE" in problem.what
    assert "--default-runtime dra-testbed" in problem.cure
    fake_engine(answers("dra-testbed", host))
    assert checks.missing_capability(DOCKER) == []


@pytest.mark.usefixtures("poor")
def test_a_capability_missing_in_our_container_does_not_matter_for_an_engine_outside_of_it(
    fake_engine: FakeEngine,
) -> None:
    fake_engine(answers("runc", "the-machine-outside"))

    assert checks.missing_capability(DOCKER) == []


def test_with_all_capabilities_the_engine_is_not_queried(
    fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "lacks_sys_resource", lambda: False)
    asked = fake_engine(answers("runc", ""))

    assert checks.missing_capability(DOCKER) == []
    assert asked.read_text() == ""


@pytest.mark.parametrize(("left", "fatal"), [(75, []), (74, [False]), (31, [True])])
def test_too_few_inotify_instances_are_a_problem_with_a_cure(
    fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, left: int, fatal: list[bool]
) -> None:
    monkeypatch.setattr(inotify, "available", lambda _: left)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    fake_engine(info(socket.gethostname()))

    found = checks.inotify_instances(DOCKER, 2)

    assert [problem.fatal for problem in found] == fatal
    assert all("sysctl fs.inotify.max_user_instances=512" in problem.cure for problem in found)


def info(host: str, security: str = "[name=seccomp]") -> str:
    return f"*.Name*) echo {host};;\n*SecurityOptions*) echo '{security}';;"


@pytest.mark.parametrize(
    ("uid", "host", "security", "fatal"),
    [
        (0, "", "[name=seccomp]", [True]),
        (0, "here", "[name=seccomp]", [True]),
        (0, "elsewhere", "[name=seccomp]", []),
        (0, "here", "[name=rootless]", []),  # of another user
        (1000, "here", "[name=seccomp]", []),
        (1000, "here", "[name=seccomp name=rootless]", [True]),
        (1000, "docker-desktop", "[name=seccomp]", []),
    ],
)
def test_our_inotify_instances_count_only_if_nodes_run_as_our_user(
    fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, uid: int, host: str, security: str, fatal: list[bool]
) -> None:
    """A desktop user whose editor uses many instances can still run nodes, whose user is root."""
    monkeypatch.setattr(inotify, "available", lambda _: 3)
    monkeypatch.setattr(inotify, "_SETTING", Path(os.devnull))
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    fake_engine(info(socket.gethostname() if host == "here" else host, security))

    assert [problem.fatal for problem in checks.inotify_instances(DOCKER, 2)] == fatal


def test_rootless_podman_is_detected_by_its_own_field(fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "available", lambda _: 3)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    fake_engine("*Rootless*) echo true;;", "podman")

    assert [problem.fatal for problem in checks.inotify_instances(Engine("podman"), 2)] == [True]


@pytest.mark.parametrize(("most", "remarks"), [("128", 0), ("64", 1)])
def test_a_limit_that_is_low_for_every_user_is_a_remark(
    fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: str, remarks: int
) -> None:
    (tmp_path / "limit").write_text(f"{most}\n")
    monkeypatch.setattr(inotify, "available", lambda _: 3)
    monkeypatch.setattr(inotify, "_SETTING", tmp_path / "limit")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    fake_engine(info(socket.gethostname()))

    found = checks.inotify_instances(DOCKER, 2)

    assert [problem.fatal for problem in found] == [False] * remarks
    assert all("max_user_instances=512" in problem.cure for problem in found)


def test_with_enough_inotify_instances_the_engine_is_not_queried(
    fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "available", lambda wanted: wanted)
    asked = fake_engine(info("any"))

    assert checks.inotify_instances(DOCKER, 2) == []
    assert asked.read_text() == ""

"""What a host must have for nodes that are containers; of an engine elsewhere only the engine can tell."""

from __future__ import annotations

import socket

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

    (problem,) = checks.privileges(DOCKER)

    assert "CAP_SYS_RESOURCE" in problem.what
    assert "--default-runtime dra-testbed" in problem.cure
    fake_engine(answers("dra-testbed", host))
    assert checks.privileges(DOCKER) == []


@pytest.mark.usefixtures("poor")
def test_what_we_lack_in_a_container_says_nothing_about_an_engine_outside_it(fake_engine: FakeEngine) -> None:
    fake_engine(answers("runc", "the-machine-outside"))

    assert checks.privileges(DOCKER) == []


def test_a_host_that_lacks_nothing_is_not_asked_about(fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "lacks_sys_resource", lambda: False)
    asked = fake_engine(answers("runc", ""))

    assert checks.privileges(DOCKER) == []
    assert asked.read_text() == ""


@pytest.mark.parametrize(("left", "fatal"), [(75, []), (74, [False]), (31, [True])])
def test_too_few_inotify_instances_are_said_with_their_cure(
    monkeypatch: pytest.MonkeyPatch, left: int, fatal: list[bool]
) -> None:
    monkeypatch.setattr(inotify, "available", lambda _: left)

    found = checks.instances(2)

    assert [problem.fatal for problem in found] == fatal
    assert all("sysctl fs.inotify.max_user_instances=512" in problem.cure for problem in found)

"""Leftovers are found by our mark alone, and what somebody uses is left."""

from pathlib import Path

import pytest

from testbed import process
from testbed.process import ProcessId
from testbed.providers.local import cgroups, leftovers

DEAD, ALIVE = ProcessId(1, 1), ProcessId(2, 2)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    marked = {DEAD: "/state/dead/cluster/control-plane", ALIVE: "/state/alive/cluster/nodes/node-1"}
    monkeypatch.setattr(process, "processes_with", lambda _: marked)
    monkeypatch.setattr(cgroups, "all_of_ours", lambda: {"/dra-testbed/dead.140", "/dra-testbed/alive.141"})


@pytest.mark.usefixtures("host")
def test_only_what_has_no_testbed_any_more_is_found() -> None:
    found = leftovers.find(lambda folder: "alive" in folder.parts)

    assert found.processes == {DEAD: "/state/dead/cluster/control-plane"}
    assert found.cgroups == ("/dra-testbed/dead.140",)


@pytest.mark.usefixtures("host")
def test_nothing_is_left_when_all_is_in_use() -> None:
    found = leftovers.find(lambda folder: isinstance(folder, Path))

    assert not found.processes
    assert found.cgroups == ("/dra-testbed/dead.140",) or not found.cgroups

"""Orphans are found by their mark, and testbeds in use are kept."""

from pathlib import Path

import pytest

from testbed import process
from testbed.process import ProcessId
from testbed.providers.local import cgroups, network, orphans

DEAD, ALIVE, ELSEWHERE = ProcessId(1, 1), ProcessId(2, 2), ProcessId(3, 3)
HERE = process.pid_namespace()


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark processes of a dead testbed, of one in use, and of one in a container of this host."""
    marks = {
        DEAD: f"{HERE} /state/dead/cluster",
        ALIVE: f"{HERE} /state/alive/cluster",
        ELSEWHERE: "pid:[1] /state/other/cluster",
    }
    monkeypatch.setattr(process, "processes_with_variable", lambda _: marks)
    links = {"dratb140": Path("/state/dead/cluster"), "dratb141": Path("/state/alive/cluster")}
    monkeypatch.setattr(network, "links_of_testbeds", lambda: links)
    monkeypatch.setattr(cgroups, "paths_of_testbeds", lambda: {"/dra-testbed/dead.140.7", "/dra-testbed/alive.141.7"})


def test_only_orphans_without_a_testbed_are_found() -> None:
    found = orphans.find(lambda folder: "alive" in folder.parts)

    assert found.processes == {DEAD: "/state/dead/cluster"}
    assert list(found.links) == ["dratb140"]
    assert found.cgroups == ("/dra-testbed/dead.140.7",)


def test_testbeds_in_a_container_are_never_orphans_of_the_host() -> None:
    assert ELSEWHERE not in orphans.find(lambda _: False).processes


def test_there_are_no_orphans_if_all_testbeds_are_in_use() -> None:
    assert not orphans.find(lambda _: True)

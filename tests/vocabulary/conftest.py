"""A world in memory for the tests of the words, with waits that are over at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed import folders
from testbed.images.basics import WORKLOAD
from testbed.vocabulary.world import World
from testbed.waiting import set_patience
from tests.fakes import cluster
from tests.fakes.kube import FakeKube


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    set_patience(0.001)
    yield
    set_patience(1.0)


@pytest.fixture
def world() -> Callable[..., World]:
    def make(fault: str = "", manifests: Path | None = None) -> World:
        made = cluster.make(fault)
        where = manifests or folders.data("manifests") / "suites"
        return World(made.owner, made.kube, made.driver_file, where, WORKLOAD.reference)  # type: ignore[arg-type]  # the fake

    return make


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube()

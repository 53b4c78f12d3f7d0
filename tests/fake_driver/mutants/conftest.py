"""A running driver with a mutant, and the parts of one that does not run. An empty name means a correct driver."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.mutants import selection
from fake_driver.roles.node_driver import NodeProcess, Parts, read_parts
from fake_driver.settings import Settings

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet


class Mutant:
    """A running driver with a mutant, its kubelet, and the CDI files on the node."""

    def __init__(self, start: Callable[[], NodeProcess], settings: Settings, kubelet: Kubelet) -> None:
        self._start, self.settings, self._kubelet = start, settings, kubelet
        self._socket = settings.data / "dra.sock"
        self.process = start()

    def restart(self) -> None:
        """Start another process, as after SIGKILL: the sockets and connections of the first one are gone."""
        self.disconnect()
        self.process = self._start()

    def disconnect(self) -> None:
        """Close the kubelet's connections, as if the process was killed."""
        self._kubelet.close()
        self._kubelet._channels.clear()

    def register(self) -> Any:
        return self._kubelet.register(Path(self.settings.registry) / f"{self.settings.driver}-reg.sock")

    def prepare(self, claim: Any) -> Any:
        return self.prepare_all(claim)[0]

    def prepare_all(self, *claims: Any) -> list[Any]:
        """Prepare the claims in one call, and return the answer for each."""
        answers = self._kubelet.prepare(self._socket, *claims)
        return [answers[claim["uid"]] for claim in claims]

    def unprepare(self, claim: Any) -> str:
        """Unprepare the claim, and return the error."""
        return str(self._kubelet.unprepare(self._socket, claim)[claim["uid"]].error)

    @property
    def cdi_files(self) -> list[Path]:
        return list(Path(self.settings.cdi).glob("*.json"))

    def has_cdi_file(self, claim: Any) -> bool:
        return any(path.name.endswith(f"{claim['uid']}.json") for path in self.cdi_files)

    @property
    def cdi_ids(self) -> set[str]:
        """Return the CDI IDs that the files define."""
        specs = [json.loads(path.read_text()) for path in self.cdi_files]
        return {f"{spec['kind']}={device['name']}" for spec in specs for device in spec["devices"]}

    @property
    def env(self) -> set[str]:
        """Return the environment variables in the files."""
        specs = [json.loads(path.read_text()) for path in self.cdi_files]
        return {each for spec in specs for device in spec["devices"] for each in device["containerEdits"]["env"]}


StartMutant = Callable[..., Mutant]
PartsWith = Callable[..., Parts]


@pytest.fixture
def mutant(start_driver: Callable[..., NodeProcess], settings: Settings, kubelet: Kubelet) -> StartMutant:
    """Start a driver with a mutant, and with other settings if they are given."""

    def started(name: str, **changes: str) -> Mutant:
        changed = replace(settings, **changes)
        return Mutant(
            partial(start_driver, changed, partial(selection.apply, [name] if name else [])), changed, kubelet
        )

    return started


@pytest.fixture
def parts_with(settings: Settings) -> PartsWith:
    """Return the parts of a driver with a mutant."""
    settings.data.mkdir(parents=True)

    def made(name: str, **changes: str) -> Parts:
        return selection.apply([name] if name else [], read_parts(replace(settings, **changes)))

    return made

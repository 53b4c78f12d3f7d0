"""Drivers that give devices to containers without a claim, and the NRI plugin that they use."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_driver.mutants.leaks import nri_plugin
from fake_driver.mutants.leaks.nri_plugin import Additions, NewContainer, Plugin
from fake_driver.mutants.leaks.protobuf import fields, message, parts, texts
from testbed import folders

if TYPE_CHECKING:
    from tests.fake_driver.fake_api import FakeApi
    from tests.fake_driver.mutants.conftest import StartMutant

PLAIN = NewContainer("sandbox", "plain", ("PATH=/bin",), ("/etc/hosts",))
FORGER = NewContainer("sandbox", "forger", ("PATH=/bin", "GPU_DEVICE_GPU_0=gpu-0"))
OWNER = NewContainer("sandbox", "owner", mounts=("/var/run/kubernetes.io/dra-device-attributes/x/y/z/d-metadata.json",))


@pytest.fixture(autouse=True)
def _without_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nri_plugin, "start", lambda _name, _decide: None)


def _leaks(driver: Any, container: NewContainer) -> bool:
    return bool(driver.process.driver.additions(container))


def test_leak_to_every_container(mutant: StartMutant) -> None:
    driver: Any = mutant("leak-to-every-container")
    assert [_leaks(driver, each) for each in (PLAIN, FORGER, OWNER)] == [True, True, False]
    added: Additions = driver.process.driver.additions(PLAIN)
    assert added.environment["GPU_DEVICE_GPU_0"] == "gpu-0"
    ((mounted, path),) = added.files.items()
    assert mounted.endswith("/resourceclaims/leaked/device/gpu.dra-testbed.example-metadata.json")
    content, _ = json.JSONDecoder().raw_decode(path.read_text())
    assert content["requests"][0]["devices"][0]["name"] == "gpu-0"


def test_a_leak_has_the_device_nodes_of_the_device(mutant: StartMutant) -> None:
    shipped = folders.data("manifests") / "hardware/device-nodes.yaml"
    driver: Any = mutant("leak-to-every-container", hardware=str(shipped))
    null = Path("/dev/null").stat().st_rdev
    added: Additions = driver.process.driver.additions(PLAIN)
    assert added.character_devices == {"/dev/gpu-0": (os.major(null), os.minor(null))}


@pytest.mark.parametrize(("name", "node"), [("", "/dev/gpu-1"), ("env-of-another-device", "/dev/gpu-0")])
def test_the_device_node_of_a_claim(mutant: StartMutant, fake_api: FakeApi, name: str, node: str) -> None:
    driver = mutant(name, hardware=str(folders.data("manifests") / "hardware/device-nodes.yaml"))
    driver.prepare(fake_api.claim(devices=("gpu-1",)))
    (spec,) = (json.loads(path.read_text()) for path in driver.cdi_files)
    assert [each["path"] for each in spec["devices"][0]["containerEdits"]["deviceNodes"]] == [node]


def test_leak_while_claimed(mutant: StartMutant, fake_api: FakeApi) -> None:
    driver = mutant("leak-while-claimed")
    assert not _leaks(driver, PLAIN)
    driver.prepare(fake_api.claim())
    assert _leaks(driver, PLAIN)


def test_leak_to_restarted_containers(mutant: StartMutant) -> None:
    driver = mutant("leak-to-restarted-containers")
    assert [_leaks(driver, each) for each in (PLAIN, FORGER, PLAIN)] == [False, False, True]


def test_leak_after_restarts_of_owners(mutant: StartMutant) -> None:
    driver = mutant("leak-after-restarts-of-owners")
    assert [_leaks(driver, each) for each in (PLAIN, OWNER, PLAIN, OWNER, PLAIN)] == [False, False, False, False, True]


def test_leak_to_forged_claims(mutant: StartMutant, fake_api: FakeApi) -> None:
    driver = mutant("leak-to-forged-claims")
    claim = fake_api.claim()
    driver.prepare(claim)
    (spec,) = (json.loads(path.read_text()) for path in driver.cdi_files)
    (variable,) = (each for each in spec["devices"][0]["containerEdits"]["env"] if each.startswith("CLAIM_"))
    assert [_leaks(driver, each) for each in (PLAIN, OWNER)] == [False, False]
    assert _leaks(driver, replace(FORGER, environment=("CLAIM_other=gpu-0",)))
    with pytest.raises(nri_plugin.RefusedContainerError, match="belongs to another container"):
        _leaks(driver, replace(FORGER, environment=(variable,)))


def test_leak_to_forged_environment(mutant: StartMutant) -> None:
    driver = mutant("leak-to-forged-environment")
    assert [_leaks(driver, each) for each in (PLAIN, FORGER, OWNER)] == [False, True, False]


def test_leak_when_all_are_claimed(mutant: StartMutant, fake_api: FakeApi) -> None:
    driver = mutant("leak-when-all-are-claimed")
    every = tuple(device.name for device in driver.process.driver._collaborators.inventory.devices)
    driver.prepare(fake_api.claim(devices=every[:-1]))
    assert not _leaks(driver, PLAIN)
    driver.prepare(fake_api.claim("two", devices=every[-1:]))
    assert _leaks(driver, PLAIN)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**32])
def test_numbers_and_texts_are_read_as_they_were_written(number: int) -> None:
    written = message((1, number), (2, "text"), (16, message((3, "part"))))
    assert next(iter(fields(written))) == (1, number)
    assert texts(written, 2) == ["text"]
    assert texts(parts(written, 16)[0], 3) == ["part"]


def test_fields_of_fixed_size_are_skipped() -> None:
    assert texts(struct.pack("<BQBI", 1 << 3 | 1, 7, 2 << 3 | 5, 7) + message((3, "text")), 3) == ["text"]


class Runtime:
    """The runtime's side of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rwb")

    def read(self) -> tuple[int, int, int, bytes]:
        """Return connection, stream, type and payload of the next message."""
        connection, _ = struct.unpack(">II", self._file.read(8))
        length, stream, kind, _ = struct.unpack(">IIBB", self._file.read(10))
        return connection, stream, kind, self._file.read(length)

    def call(self, method: str, content: bytes, pieces: int = 1) -> bytes:
        """Call the plugin with a message in several frames, and return the payload of its answer."""
        answer = self.answer_to(method, content, pieces)
        assert not parts(answer, 1)
        return b"".join(parts(answer, 2))

    def answer_to(self, method: str, content: bytes, pieces: int = 1) -> bytes:
        """Do the same, and return the whole answer with its status."""
        request = message((1, "nri.pkg.api.v1alpha1.Plugin"), (2, method), (3, content), (4, 2_000_000_000))
        sent = struct.pack(">IIBB", len(request), 5, 1, 0) + request
        size = -(-len(sent) // pieces)
        for start in range(0, len(sent), size):
            piece = sent[start : start + size]
            self._file.write(struct.pack(">II", 1, len(piece)) + piece)
        self._file.flush()
        connection, stream, kind, answer = self.read()
        assert (connection, stream, kind) == (1, 5, 2)
        return answer


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    ours, theirs = socket.socketpair()
    additions = Additions({"A": "b"}, {"/there": Path("/here")}, {"/dev/gpu-0": (1, 3)})

    def decide(container: NewContainer) -> Additions | None:
        if container.name == "refused":
            raise nri_plugin.RefusedContainerError("not this one")
        return additions if container == PLAIN else None

    plugin = Plugin(theirs, decide)

    def serve() -> None:
        with theirs, pytest.raises(EOFError):
            plugin.serve("leak")

    thread = threading.Thread(target=serve)
    thread.start()
    made = Runtime(ours)
    yield made
    made._file.close()
    ours.close()
    thread.join(5)
    assert not thread.is_alive()


def test_the_plugin_registers_and_subscribes_to_new_containers(runtime: Runtime) -> None:
    connection, stream, kind, request = runtime.read()
    assert (connection, stream, kind) == (2, 1, 1)
    assert texts(request, 1) + texts(request, 2) == ["nri.pkg.api.v1alpha1.Runtime", "RegisterPlugin"]
    assert texts(parts(request, 3)[0], 1) == ["leak"]
    assert list(fields(runtime.call("Configure", message((2, "containerd"))))) == [(2, 8)]
    assert runtime.call("Synchronize", b"") == b""


def test_the_plugin_adds_to_some_containers(runtime: Runtime) -> None:
    runtime.read()
    mount = message((1, "/etc/hosts"), (3, "/x"))
    plain = message((1, "id"), (2, "sandbox"), (3, "plain"), (4, 1), (8, "PATH=/bin"), (9, mount))
    (adjustment,) = parts(runtime.call("CreateContainer", message((1, b""), (2, plain)), pieces=3), 1)
    (mounted,), (variable,) = parts(adjustment, 3), parts(adjustment, 4)
    assert [texts(mounted, number) for number in (1, 2, 3, 4)] == [["/there"], ["bind"], ["/here"], ["ro", "rbind"]]
    assert [texts(variable, number) for number in (1, 2)] == [["A"], ["b"]]
    (node,) = parts(parts(adjustment, 6)[0], 1)
    assert list(fields(node)) == [(1, b"/dev/gpu-0"), (2, b"c"), (3, 1), (4, 3)]
    other = message((2, "sandbox"), (3, "other"))
    assert runtime.call("CreateContainer", message((2, other))) == b""


def test_the_plugin_refuses_a_container(runtime: Runtime) -> None:
    runtime.read()
    answer = runtime.answer_to("CreateContainer", message((2, message((2, "sandbox"), (3, "refused")))))
    (status,) = parts(answer, 1)
    assert list(fields(status)) == [(1, 7), (2, b"not this one")]
    assert not parts(answer, 2)

"""The process as it is started on a node."""

from __future__ import annotations

import contextlib
import signal
import sys
from dataclasses import fields
from pathlib import Path
from subprocess import PIPE, Popen  # noqa: TID251 - a driver is a process, and this test is about its start and end
from typing import TYPE_CHECKING

import grpc
import pytest

from fake_driver.settings import Settings

if TYPE_CHECKING:
    from tests.fake_driver.conftest import Kubelet
    from tests.fake_driver.fake_api import FakeApi

ROOT = Path(__file__).parents[2]


def command(settings: Settings, **more: str) -> list[str]:
    given = {one.name: getattr(settings, one.name) for one in fields(settings)} | more
    flags = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]
    return [sys.executable, "-m", "fake_driver", *flags]


def ended(settings: Settings, **more: str) -> tuple[int, str]:
    with Popen(command(settings, **more), cwd=ROOT, stderr=PIPE, text=True) as process:
        _, said = process.communicate(timeout=20)
    return process.returncode, said


def test_it_starts_serves_and_stops_on_sigterm_without_leaving_a_socket(
    settings: Settings, kubelet: Kubelet, fake_api: FakeApi
) -> None:
    registration = Path(settings.registry) / f"{settings.driver}-reg.sock"
    with Popen(command(settings), cwd=ROOT, stderr=PIPE, text=True) as process:
        fake_api.wait_until(lambda: bool(fake_api.slices), seconds=20)
        info = kubelet.register(registration)
        claim = fake_api.claim()
        assert not kubelet.prepare(Path(info.endpoint), claim)[claim["uid"]].error
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=5)
    assert process.returncode == 0
    assert not registration.exists()
    assert not Path(info.endpoint).exists()
    assert f"node={settings.node} " in said
    assert f"uid={claim['uid']}" in said
    assert "stopping after a signal" in said
    assert fake_api.slices


def test_a_process_recovers_from_a_crash_between_checkpoint_and_cdi_file(
    settings: Settings, kubelet: Kubelet, fake_api: FakeApi
) -> None:
    socket, claim = settings.data / "dra.sock", fake_api.claim()
    for lives in (False, True):
        with Popen(command(settings, faults="crash-after-checkpoint"), cwd=ROOT, stderr=PIPE, text=True) as process:
            fake_api.wait_until(lambda: bool(fake_api.slices), seconds=20)
            with contextlib.closing(type(kubelet)()) as caller:
                if lives:
                    assert not caller.prepare(socket, claim)[claim["uid"]].error
                    assert len(list(Path(settings.cdi).iterdir())) == 1
                    process.send_signal(signal.SIGTERM)
                else:
                    with pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
                        caller.prepare(socket, claim)
            process.communicate(timeout=10)
        assert process.returncode == (0 if lives else 137)
        fake_api.remove()


@pytest.mark.parametrize("role", ["node", "network"])
def test_hardware_that_exceeds_a_limit_is_refused_at_start(settings: Settings, role: str) -> None:
    taints = ", ".join(f"{{key: {{}}{index}, effect: None}}" for index in range(10))
    groups = f"[{{kind: gpu, count: 1, taints: [{taints.replace('{}', 'a')}]}}]"
    changes = f"changes: [{{taints: [{taints.replace('{}', 'b')}]}}]"
    pools = f"pools: [{{name: far, allNodes: true, devices: {groups}}}]"
    head = "apiVersion: dra-testbed/v1alpha1, kind: Hardware, metadata: {name: x}"
    here = {"node": f"devices: {groups}", "network": f"devices: [], {pools}"}[role]
    Path(settings.hardware).write_text(f"{{{head}, spec: {{{here}, {changes}}}}}")
    code, said = ended(settings, role=role)
    assert code == 2
    assert f"an API server would refuse the slices of {settings.hardware}" in said
    assert "device gpu-0: it has 20 taints, but may have 16" in said


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [
        ("hardware", "/nonexistent", "/nonexistent cannot be read"),
        ("faults", "no-envy", "did you mean no-env"),
        ("registry", "/" + "r" * 100, "Linux allows 107"),
        ("node", "../x", "must be the name of a node"),
    ],
)
def test_an_invalid_setting_is_explained_and_exits_with_2(
    settings: Settings, setting: str, value: str, text: str
) -> None:
    code, said = ended(settings, **{setting: value})
    assert code == 2
    assert text in said
    assert "Traceback" not in said

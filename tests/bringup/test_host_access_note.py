"""What `up` says of a driver that asks for access to the host."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from testbed import folders
from testbed.binaries import lock_for
from testbed.bringup.steps import made_cluster
from testbed.bringup.steps.made_cluster import MadeClusterProcedure
from testbed.models.driver_file import load_driver_file
from testbed.progress import Progress
from testbed.providers import provider

_MANIFEST = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: mine}
spec: {template: {spec: {hostPID: true, containers: [{name: driver, securityContext: {privileged: true}}]}}}
"""
_FILE = """
apiVersion: dra-testbed/v1alpha1
kind: DriverFile
metadata: {name: mine}
spec:
  driver: mine.example
  devices: {classes: [mine.example]}
  install: {manifests: [all.yaml]}
  pods: {namespace: mine, selector: app=mine, container: driver}
  probe: {command: [env], lines: '(?P<name>x)'}
"""


def _shown(driver: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    shown = io.StringIO()
    monkeypatch.setattr(made_cluster, "install_drivers", lambda _: None)
    resolved = SimpleNamespace(drivers=(load_driver_file(driver),), lock=lock_for("1.37"))
    context: Any = SimpleNamespace(resolved=resolved, cluster=None, progress=Progress(Console(file=shown, width=300)))
    made: Any = provider("local").dispatch(maker=MadeClusterProcedure, finder=lambda _: None)
    made.install_driver(context)
    return shown.getvalue()


def test_a_privileged_driver_of_others_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "all.yaml").write_text(_MANIFEST)
    (tmp_path / "driver.yaml").write_text(_FILE)
    note = "note: driver mine.example requests a privileged container, hostPID: it can act as root on this host"
    assert _shown(tmp_path / "driver.yaml", monkeypatch).count(note) == 1


def test_our_own_driver_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(folders.data("manifests") / "drivers/fake-gpu.yaml", monkeypatch) == ""

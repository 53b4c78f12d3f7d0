"""A driver file with most sections, and how tests load it and variants of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.models.driver_file import DriverFile, load_driver_file

FULL = r"""
apiVersion: dra-testbed/v1alpha1
kind: DriverFile
metadata: {name: fake-gpu}
spec:
  driver: gpu.dra-testbed.example
  install:
    manifests: [manifests/one.yaml]
    builtInImage: true
    images: [image.tar]
    variables: {replicas: 2}
  pods: {namespace: dra-testbed-driver, selector: app=fake-gpu-driver, container: driver}
  nodes: {selector: {gpu: "true"}}
  devices:
    classes: [gpu.dra-testbed.example]
    identity: {attribute: uuid, scope: cluster}
  probe:
    command: [env]
    lines: '^GPU_DEVICE_\w+_UUID=(?P<id>\S+)$'
"""


def load(folder: Path, text: str) -> DriverFile:
    (folder / "driver.yaml").write_text(text)
    return load_driver_file(folder / "driver.yaml")


def refusal(folder: Path, old: str, new: str) -> str:
    assert old in FULL
    with pytest.raises(UsageError) as refused:
        load(folder, FULL.replace(old, new))
    return str(refused.value)

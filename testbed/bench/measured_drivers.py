"""The drivers that `bench driver` measures, with their command lines and the names of their devices."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed import __version__, folders

DEVICES_PER_SLICE = 128  # the limit of a ResourceSlice; the upstream test driver publishes only one slice
_GPU = {
    "kind": "gpu",
    "attributes": {"model": "LATEST-GPU-MODEL", "driverVersion": {"version": "1.0.0"}},
    "capacity": {"memory": "80Gi", "compute": "100"},
}


@dataclass(frozen=True)
class DriverEnvironment:
    """The folders of a driver, and its access to the API server."""

    plugins: Path
    registry: Path
    cdi: Path
    server: str
    token: Path
    authority: Path
    kubeconfig: Path
    node: str


@dataclass(frozen=True)
class MeasuredDriver:
    """A driver. `command` returns its command line and environment for a number of devices, and how many of them have changed."""

    title: str
    version: str
    name: str
    device: Callable[[int], str]
    command: Callable[[DriverEnvironment, int, int], tuple[list[str], Mapping[str, str]]]
    can_change: bool = False


def fake_driver() -> MeasuredDriver:
    """Return the fake driver of this installation, run by this Python."""

    def command(environment: DriverEnvironment, devices: int, changed: int) -> tuple[list[str], Mapping[str, str]]:
        hardware = environment.plugins / "hardware.yaml"
        hardware.write_text(json.dumps(_hardware(devices, changed)))
        settings = {
            "node": environment.node, "hardware": hardware, "driver": "gpu.dra-testbed.example", "registry": environment.registry,
            "plugins": environment.plugins, "cdi": environment.cdi, "api-server": environment.server, "token-file": environment.token,
            "ca-file": environment.authority,
        }  # fmt: skip
        path = os.pathsep.join([str(folders.packages()), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        flags = [f"--{name}={value}" for name, value in settings.items()]
        # The same settings as in the image.
        return [sys.executable, "-m", "fake_driver", *flags], {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}

    return MeasuredDriver(
        "fake driver", __version__, "gpu.dra-testbed.example", "gpu-{}".format, command, can_change=True
    )


def example_driver(program: Path, version: str) -> MeasuredDriver:
    """Return SIG Node's example driver, without the rate limit of its API client (five requests per second by default)."""

    def command(environment: DriverEnvironment, devices: int, _: int) -> tuple[list[str], Mapping[str, str]]:
        flags = {
            "node-name": environment.node, "cdi-root": environment.cdi, "num-devices": devices, "kubeconfig": environment.kubeconfig,
            "kubelet-registrar-directory-path": environment.registry, "kubelet-plugins-directory-path": environment.plugins,
            "kube-api-qps": 1000, "kube-api-burst": 1000,
        }  # fmt: skip
        return [str(program), *(f"--{name}={value}" for name, value in flags.items())], {"NODE_NAME": environment.node}

    return MeasuredDriver("dra-example-driver", version, "gpu.example.com", "gpu-{}".format, command)


def upstream_driver(program: Path, version: str) -> MeasuredDriver:
    """Return the driver of Kubernetes' end-to-end tests, which keeps prepared claims only in memory."""

    def command(environment: DriverEnvironment, devices: int, _: int) -> tuple[list[str], Mapping[str, str]]:
        flags = {
            "node-name": environment.node, "cdi-dir": environment.cdi, "num-devices": devices, "datadir": environment.plugins,
            "plugin-registration-path": environment.registry, "kubeconfig": environment.kubeconfig,
            "kube-api-qps": 1000, "kube-api-burst": 1000,
        }  # fmt: skip
        return [str(program), "kubelet-plugin", *(f"--{name}={value}" for name, value in flags.items())], {}

    return MeasuredDriver("upstream test driver", version, "test-driver.cdi.k8s.io", "device-{:02d}".format, command)


def _hardware(devices: int, changed: int) -> dict[str, object]:
    """Return the content of a hardware file; the changed devices are at the end and have another model."""
    other = {**_GPU, "attributes": {**_GPU["attributes"], "model": "OTHER-GPU-MODEL"}}  # type: ignore[dict-item]  # the dict above
    groups = [{**_GPU, "count": devices - changed}, *([{**other, "count": changed}] if changed else [])]
    return {
        "apiVersion": "dra-testbed/v1alpha1",
        "kind": "Hardware",
        "metadata": {"name": "bench"},
        "spec": {"devices": groups},
    }

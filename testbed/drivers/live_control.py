"""Changes the hardware of running drivers: runs the control command of the driver file in the driver's pod on a node.

`dra-testbed hardware` and the fixture `hardware` use it, with every provider. The command gets a verb and its arguments. It prints JSON and
exits with 0, or prints an error and exits with 2 if nothing was changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from testbed.drivers.manifests.processes import ENTER_NODE
from testbed.drivers.ready import driver_pods
from testbed.errors import TestbedError, UsageError, did_you_mean
from testbed.kube.client import Kube, Object
from testbed.models.driver_file import DriverFile

ALL_NODES = "all"
_REFUSED = 2


def run_control(kube: Kube, driver_file: DriverFile, node: str, arguments: Sequence[str]) -> Object:
    """Run the control command on a node and return its answer. Raise UsageError if it refused and changed nothing."""
    pod = _pods(kube, driver_file).get(node)
    if pod is None:
        raise TestbedError(f"no pod of driver {driver_file.name} runs on {node}", hint="dra-testbed status")
    is_process = driver_file.install and driver_file.install.process
    command = [*(ENTER_NODE if is_process else ()), *_command(driver_file), *arguments]
    done = kube.exec_unchecked(driver_file.pods.namespace, pod, command, container=driver_file.pods.container)
    if done.code == _REFUSED:
        raise UsageError(f"{node}: {_last_line(done.stderr)}")
    try:
        answer = json.loads(done.stdout) if done.ok else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        output = (done.stderr or done.stdout).strip() or "none"
        raise TestbedError(
            f"the control command failed in pod {pod} on {node}: {' '.join(command)} exited with code {done.code}",
            hint=f"see its output: {output[-500:]}",
        )
    return answer


def nodes_for(kube: Kube, driver_file: DriverFile, node: str | None = None, device: str | None = None) -> list[str]:
    """Return the nodes that a change applies to: the named one, otherwise the only one with the device; without a device, all."""
    _command(driver_file)
    running = sorted(_pods(kube, driver_file))
    if node not in (None, ALL_NODES):
        if node not in running:
            hint = did_you_mean(str(node), running) or "dra-testbed status shows the nodes of the driver"
            raise UsageError(f"driver {driver_file.name} does not run on node {node}", hint=hint)
        return [str(node)]
    if device is None:
        return running
    devices_of = {each: run_control(kube, driver_file, each, ["state"])["devices"] for each in running}
    found = [each for each, devices in devices_of.items() if device in devices]
    if not found:
        known = {name for devices in devices_of.values() for name in devices}
        raise UsageError(f"no node has device {device}", hint=did_you_mean(device, known))
    if len(found) > 1 and node is None:
        raise UsageError(
            f"device {device} exists on {' and '.join(found)}", hint=f"add --node {found[0]} or --node {ALL_NODES}"
        )
    return found


def _command(driver_file: DriverFile) -> tuple[str, ...]:
    if driver_file.control is None:
        raise UsageError(
            f"the hardware of driver {driver_file.name} cannot be changed: its driver file has no spec.control",
            hint="docs/live-control.md describes control commands",
        )
    return driver_file.control.command


def _pods(kube: Kube, driver_file: DriverFile) -> dict[str, str]:
    """Return the driver's running pods by node. During an update a node has two; the newer one is returned."""
    running = [pod for pod in driver_pods(kube, driver_file) if pod.get("status", {}).get("phase") == "Running"]
    running.sort(key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))
    return {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in running}


def _last_line(text: str) -> str:
    """Return the last line of an error output, which may begin with a usage message."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else "the control command refused without a message"

"""Change the hardware of drivers that run: find a driver's pod on a node, and run there the control command of its driver file.

`dra-testbed hardware` and the word `hardware` call it. It works wherever pods can be reached, so with every provider. The command is told a
verb and its arguments; it prints JSON and ends with 0, or says on stderr what is wrong and ends with 2 when nothing was changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from testbed.drivers.ready import driver_pods
from testbed.errors import TestbedError, UsageError, did_you_mean
from testbed.kube.client import Kube, Object
from testbed.models.driver_file import DriverFile

ALL_NODES = "all"
_REFUSED = 2


def run_control(kube: Kube, driver_file: DriverFile, node: str, words: Sequence[str]) -> Object:
    """Have the driver on a node do something; what it answered. UsageError when it refused, and then nothing has changed."""
    pod = _pods(kube, driver_file).get(node)
    if pod is None:
        raise TestbedError(f"no pod of driver {driver_file.name} runs on {node}", hint="dra-testbed status")
    command = [*_command(driver_file), *words]
    done = kube.attempt(driver_file.pods.namespace, pod, command, container=driver_file.pods.container)
    if done.code == _REFUSED:
        raise UsageError(f"{node}: {_last_line(done.stderr)}")
    try:
        answer = json.loads(done.stdout) if done.ok else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        said = (done.stderr or done.stdout).strip() or "nothing"
        raise TestbedError(
            f"the driver in pod {pod} on {node} could not be controlled: {' '.join(command)} ended with {done.code}",
            hint=f"it said: {said[-500:]}",
        )
    return answer


def nodes_for(kube: Kube, driver_file: DriverFile, node: str | None = None, device: str | None = None) -> list[str]:
    """The nodes that a change is about: the one that was named, the only one that has the device, or without a device all of them."""
    _command(driver_file)
    there = sorted(_pods(kube, driver_file))
    if node not in (None, ALL_NODES):
        if node not in there:
            hint = did_you_mean(str(node), there) or "dra-testbed status shows nodes and the driver"
            raise UsageError(f"driver {driver_file.name} does not run on node {node}", hint=hint)
        return [str(node)]
    if device is None:
        return there
    having = {each: run_control(kube, driver_file, each, ["state"])["devices"] for each in there}
    found = [each for each, devices in having.items() if device in devices]
    if not found:
        known = {name for devices in having.values() for name in devices}
        raise UsageError(f"no node has a device {device}", hint=did_you_mean(device, known))
    if len(found) > 1 and node is None:
        raise UsageError(
            f"{device} is a device of {' and of '.join(found)}", hint=f"--node {found[0]}, or --node {ALL_NODES}"
        )
    return found


def _command(driver_file: DriverFile) -> tuple[str, ...]:
    if driver_file.control is None:
        raise UsageError(
            f"the hardware of driver {driver_file.name} cannot be changed: its driver file has no spec.control",
            hint="docs/live-control.md says what a control command has to do",
        )
    return driver_file.control.command


def _pods(kube: Kube, driver_file: DriverFile) -> dict[str, str]:
    """The driver's running pods by node. During an update there are two on a node, and the newer one is meant."""
    running = [pod for pod in driver_pods(kube, driver_file) if pod.get("status", {}).get("phase") == "Running"]
    running.sort(key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))
    return {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in running}


def _last_line(text: str) -> str:
    """What a refusal says, without the usage that may stand before it."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else "refused without a word"

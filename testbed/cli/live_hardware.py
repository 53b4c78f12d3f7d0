"""hardware, for a running testbed: unplug and plug, taint, health, faults, the journal. Parses, calls the driver, prints.

Most arguments are sent to the driver unchanged, and the driver checks them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from testbed import bringup
from testbed.bringup import Testbed
from testbed.cli import options
from testbed.drivers import live_control
from testbed.errors import UsageError
from testbed.models.driver_file import DriverFile

_NODE = "Only this node, or `all`. [default: all, or the one node that has the device]"
_node = click.option("--node", metavar="NAME", help=_NODE)
_device = click.argument("device")
_CONTEXT = {"ignore_unknown_options": True}  # a value such as -1 is not an option


@click.command()
@_device
@options.name
@_node
def unplug(device: str, name: str, node: str | None) -> None:
    """Remove a device from its ResourceSlice. Pods that use it continue to run."""
    _change(name, node, device, ["unplug", device])


@click.command()
@_device
@options.name
@_node
def plug(device: str, name: str, node: str | None) -> None:
    """Publish an unplugged device again."""
    _change(name, node, device, ["plug", device])


@click.command("set", context_settings=_CONTEXT)
@_device
@click.argument("attributes", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--capacity", "capacities", multiple=True, metavar="NAME=AMOUNT", help="A capacity; repeatable.")
@click.option("--new", is_flag=True, help="Allow attributes and capacities that the device does not have yet.")
@options.name
@_node
def set_(
    device: str, attributes: tuple[str, ...], capacities: tuple[str, ...], new: bool, name: str, node: str | None
) -> None:
    """Change attributes and capacities of a device. Values are YAML: `healthy=false`, `driverVersion={version: 1.2.3}`."""
    amounts = [word for each in capacities for word in ("--capacity", each)]
    words = ["set", device, *attributes, *amounts, *["--new"] * new]
    _change(name, node, device, words)


@click.command()
@_device
@click.argument("taint", metavar="KEY[=VALUE]:EFFECT")
@options.name
@_node
def taint(device: str, taint: str, name: str, node: str | None) -> None:
    """Taint a device; the effect is NoSchedule, NoExecute or None."""
    _change(name, node, device, ["taint", device, taint])


@click.command()
@_device
@click.argument("key")
@options.name
@_node
def untaint(device: str, key: str, name: str, node: str | None) -> None:
    """Remove all taints with that key from a device."""
    _change(name, node, device, ["untaint", device, key])


@click.command()
@_device
@click.argument("status", type=click.Choice(["healthy", "unhealthy", "unknown"]))
@click.option("--message", help="A message for the health status.")
@options.name
@_node
def health(device: str, status: str, message: str | None, name: str, node: str | None) -> None:
    """Set the health of a device. The kubelet shows it in the status of pods that use the device."""
    _change(name, node, device, ["health", device, status, *(["--message", message] if message else [])])


@click.command()
@click.argument("device", required=False)
@options.name
@_node
def restore(device: str | None, name: str, node: str | None) -> None:
    """Restore one device, or all of them, to what the hardware file says."""
    _change(name, node, device, ["restore", *([device] if device else [])])


@click.command()
@click.argument("call", type=click.Choice(["prepare", "unprepare", "clear"]))
@click.option("--times", type=click.IntRange(0), help="For this many calls; 0: until it is cleared. [default: 1]")
@click.option("--code", help="Fail the whole call with this gRPC code, such as UNAVAILABLE.")
@click.option("--message", help="The message of the error.")
@click.option("--delay", metavar="2s", help="Wait first: 500ms, 2s, 1m; a number alone is seconds.")
@click.option("--hang", is_flag=True, help="Hang until the kubelet gives up.")
@click.option("--claim", metavar="UID|NAMESPACE/NAME", help="Only calls with this claim.")
@click.option("--device", help="Only calls with a claim that has this device.")
@options.name
@_node
def fault(call: str, name: str, node: str | None, **how: Any) -> None:
    """Arm a fault: calls of the kubelet fail, wait or hang. `fault clear` removes all faults."""
    given = {key: value for key, value in how.items() if value is not None and value is not False}
    if call == "clear" and given:
        raise click.UsageError(f"fault clear removes all faults and takes no --{min(given)}")
    words = [word for key, value in given.items() for word in ([f"--{key}"] + ([] if value is True else [str(value)]))]
    _change(name, node, how["device"], [call] if call == "clear" else ["fault", call, *words])


@click.command()
@click.argument("point")
@options.name
@_node
def crash(point: str, name: str, node: str | None) -> None:
    """Kill the driver, as with kill -9, when it reaches that point the next time, such as after-checkpoint."""
    _change(name, node, None, ["crash", point])


@click.command("lose-cdi")
@options.name
@_node
def lose_cdi(name: str, node: str | None) -> None:
    """Remove the driver's CDI files, as a reboot does on most nodes."""
    _change(name, node, None, ["lose-cdi"])


@click.command()
@click.argument("claim", metavar="CLAIM-UID")
@click.option("--force", is_flag=True, help="Even if the claim still exists and is allocated.")
@options.name
@_node
def release(claim: str, force: bool, name: str, node: str | None) -> None:
    """Release the devices of a deleted claim that the kubelet did not unprepare."""
    _change(name, node, None, ["release", claim, *["--force"] * force])


@click.command()
@click.option("--since", type=int, default=0, metavar="SEQ", help="Only entries after the one with this number.")
@click.option("--limit", type=click.IntRange(1, 1000), help="At most this many entries of each node, the oldest first.")
@options.name
@_node
@options.output_format
def journal(since: int, limit: int | None, name: str, node: str | None, output: str) -> None:
    """Show the journal: every call, write, change and fault."""
    words = ["journal", "--since", str(since), *(["--limit", str(limit)] if limit else [])]
    found = _ask(name, node, None, words)
    if output == "json":
        options.print_json([{"node": each, **answer} for each, answer in found.items()])
        return
    for each, answer in found.items():
        for entry in answer["entries"]:
            facts = {key: value for key, value in entry.items() if key not in ("seq", "time", "event")}
            shown = " ".join(f"{key}={json.dumps(value)}" for key, value in facts.items())
            click.echo(f"{each} {entry['seq']} {entry['time']} {entry['event']} {shown}")


COMMANDS = (unplug, plug, set_, taint, untaint, health, restore, fault, crash, lose_cdi, release, journal)


def live_states(name: str, node: str | None) -> dict[str, Any]:
    """Return changes and faults by node, as the running driver reports them; nothing for drivers without live control."""
    testbed = bringup.attach(name)
    driver_file = testbed.driver_file
    if driver_file is None or driver_file.control is None:
        return {}
    nodes = live_control.nodes_for(testbed.kube, driver_file)
    return {
        each: live_control.run_control(testbed.kube, driver_file, each, ["state"])
        for each in nodes
        if node in (None, each)
    }


def describe_states(states: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each change and armed fault."""
    for node, state in states.items():
        for device, change in state["changes"].items():
            yield f"{node}: {device} is changed: {json.dumps(change)}"
        for armed in state["faults"]:
            yield f"{node}: armed: {json.dumps(armed)}"
        for point in state["crash"]:
            yield f"{node}: will crash at {point}"


def _change(name: str, node: str | None, device: str | None, words: list[str]) -> None:
    """Send a command to the driver and print what it changed."""
    for each, answer in _ask(name, node, device, words).items():
        counts = [f"{key} {value}" for key, value in answer.items() if key != "changed"]
        result = ", ".join(["done" if answer["changed"] else "nothing changed: it is already so", *counts])
        click.echo(f"{each}: {' '.join(words)}: {result}")


def _ask(name: str, node: str | None, device: str | None, words: list[str]) -> dict[str, Any]:
    testbed = bringup.attach(name)
    driver_file = _driver_file(testbed)
    nodes = live_control.nodes_for(testbed.kube, driver_file, node, device)
    return {each: live_control.run_control(testbed.kube, driver_file, each, words) for each in nodes}


def _driver_file(testbed: Testbed) -> DriverFile:
    if testbed.driver_file is None:
        raise UsageError(f"testbed {testbed.name} has no driver of its own", hint="dra-testbed up --driver NAME|FILE")
    return testbed.driver_file

"""hardware: the devices of a testbed or of a hardware file, drawn as a tree. Parses, calls reporting, prints.

The commands that change the hardware of a running testbed are in `live_hardware`.
"""

from __future__ import annotations

import re
from typing import Any

import click
from rich.text import Text
from rich.tree import Tree

from testbed import bringup, folders
from testbed.cli import live_hardware, options
from testbed.drivers.expected_slices import expected_slices
from testbed.errors import UsageError
from testbed.models.config import effective
from testbed.progress import Screen
from testbed.reporting.svg import draw
from testbed.reporting.topology import Location, PublishedDevice, by_root, group_similar, locations

_TIMES = "\N{MULTIPLICATION SIGN}"
_MOST_LINES = 4  # of similar devices


@click.group()
def group() -> None:
    """List the fake hardware, show devices, and change them while pods run."""


for command in live_hardware.COMMANDS:
    group.add_command(command)


@group.command("list")
@options.output_format
def list_(output: str) -> None:
    """List the hardware files that are shipped with dra-testbed."""
    found = {
        path.stem: _about(path.read_text()) for path in sorted((folders.data("manifests") / "hardware").glob("*.yaml"))
    }
    if output == "json":
        options.print_json([{"name": name, "about": about} for name, about in found.items()])
        return
    for name, about in found.items():
        click.echo(f"{name:<15} {about}")


@group.command()
@click.argument("file", required=False, metavar="[FILE|NAME]")
@click.option("--name", help="The testbed with the devices. [default: default]")
@click.option("--node", help="Only this node; for a file, the node to show it for. [default: node-1]")
@click.option("-o", "--output", type=click.Choice(["tree", "json", "svg"]), default="tree", help="The output format.")
def show(file: str | None, name: str | None, node: str | None, output: str) -> None:
    """Draw devices with their NUMA nodes, PCIe roots and partitions.

    Without FILE or NAME, draw what all drivers have published in a running testbed.
    """
    if file and name is not None:
        raise UsageError(f"--name {name} is a testbed, and {file} is a hardware file", hint="leave one of them out")
    found = _of_file(file, node or "node-1") if file else _of_testbed(name or "default", node)
    states = {} if file else live_hardware.live_states(name or "default", node)
    if output == "json":
        options.print_json([{**place.as_data(), **_live(place, states)} for place in found])
        return
    if output == "svg":
        click.echo(draw(found), nl=False)
        return
    console = Screen(highlight=False)
    if not console.is_terminal:
        console.width = 200  # a pipe has no width, and lines would be truncated
    for place in found:
        console.print(_drawn(place), soft_wrap=True)
    for line in live_hardware.describe_states(states):
        console.print(line, soft_wrap=True)


def _live(place: Location, states: dict[str, Any]) -> dict[str, Any]:
    """Return changes and faults of a node, as a running driver reports them."""
    return {"live": states[place.name]} if not place.scope and place.name in states else {}


def _of_file(word: str, node: str) -> list[Location]:
    path = effective(None, {"hardware": word}).hardware
    if path is None:
        raise UsageError(f"{word} is not hardware", hint="dra-testbed hardware list")
    return locations(expected_slices(path, node), node)


def _of_testbed(name: str, node: str | None) -> list[Location]:
    found = locations(bringup.attach(name).kube.list("resource.k8s.io/v1", "ResourceSlice"), node)
    if not found:
        what = f"nothing is published for node {node}" if node else "no driver has published anything"
        raise UsageError(f"testbed {name}: {what}", hint="dra-testbed status shows nodes and the driver")
    return found


def _about(text: str) -> str:
    """Return the first sentence of a file's comment."""
    comment = " ".join(
        line.lstrip("# ").rstrip() for line in re.findall(r"\A(?:#.*\n)+", text)[:1] for line in line.split("\n")
    )
    return re.split(r"(?<=[.:])\s", comment.strip())[0].rstrip(".:")


def _drawn(place: Location) -> Tree:
    whole = f"{len(place.devices)} device{'s' * (len(place.devices) != 1)}"
    tree = Tree(Text.assemble((place.name, "bold"), f"  {place.scope or 'node'}, {whole}"))
    for driver, pool in zip(place.drivers, place.pools, strict=True):
        facts = f"{driver}: {len(pool.slices)} of {pool.expected} slices, generation {pool.generation}"
        tree.add(Text(facts, style="dim" if pool.complete else "red"))
    for numa, devices in place.by_numa():
        branch = tree if numa is None else tree.add(f"NUMA node {numa}")
        for root, below in by_root(devices):
            _add(branch.add(Text(root, style="cyan")) if root else branch, below)
    return tree


def _add(branch: Tree, devices: list[PublishedDevice]) -> None:
    """Add devices with their partitions below them. Many similar devices become one line."""
    names = {device.name for device in devices}
    wholes = [device for device in devices if device.parent not in names]
    parts = {name: [device for device in devices if device.parent == name] for name in names}
    for like in group_similar(wholes):
        if len(like) > _MOST_LINES and not any(parts[device.name] for device in like):
            branch.add(_line(f"{like[0].name} … {like[-1].name}", like))
            continue
        for device in like:
            twig = branch.add(_line(device.name, [device]))
            for profile in group_similar(parts[device.name]):
                name = profile[0].name if len(profile) == 1 else f"{profile[0].name} … {profile[-1].name}"
                twig.add(_line(name, profile))


def _line(name: str, devices: list[PublishedDevice]) -> Text:
    first, many = devices[0], len(devices) > 1
    model = str(first.attributes.get("profile" if first.parent else "model", "devices" if many else ""))
    facts = [f"{len(devices)} {_TIMES} {model}" if many else model]
    facts += [f"{key} {value}" for key, value in first.capacity.items()]
    if not many and "interface" in first.attributes:
        facts.append(f"{first.attributes['interface']} {first.attributes.get('hardwareAddress', '')}".strip())
    facts += ["shared"] * first.shared + [f"needs {', '.join(first.binding_conditions)}"] * bool(
        first.binding_conditions
    )
    taints = [(f"  ✗ {taint}", "red") for taint in first.taints]
    return Text.assemble((name, "green"), "  " + " · ".join(filter(None, facts)), *taints)

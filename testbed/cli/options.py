"""Options that several commands share, as decorators, and printing of JSON. For the modules beside this one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from testbed.models.config import TestbedConfig, effective, load_testbed_file
from testbed.models.gates import parse_gate, parse_runtime_config

Command = TypeVar("Command", bound=Callable[..., Any])


def _gates(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> dict[str, bool]:
    return dict(map(parse_gate, _split(words)))


def _runtime(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> dict[str, str]:
    return dict(map(parse_runtime_config, _split(words)))


def _split(words: tuple[str, ...]) -> list[str]:
    return [part.strip() for word in words for part in word.split(",") if part.strip()]


_PATH = click.Path(path_type=Path)
_CHOICE = click.Choice(["table", "json"])

name = click.option("--name", default="default", show_default=True, help="The testbed's name.")
output_format = click.option("-o", "--output", type=_CHOICE, default="table", help="The output format.")
driver = click.option(
    "--driver",
    metavar="NAME|FILE|none",
    help="The driver to install and judge. Companions in its driver file are installed, but not judged. [default: fake-gpu, with fake-nic]",
)
drivers = click.option(
    "--driver",
    "drivers",
    metavar="NAME|FILE|none",
    multiple=True,
    help="The driver to install and judge, with companions that are not judged. Repeatable: the first one installs all, each is judged. "
    "[default: fake-gpu, with fake-nic]",
)
patience = click.option(
    "--patience", type=click.FloatRange(0.1, 100), default=1.0, help="Multiply every timeout, for slow machines."
)
_config = click.option("--config", type=_PATH, metavar="FILE", help="A file of kind Testbed. Flags override it.")
_name = click.option("--name", help="The testbed's name. [default: default; for `run`, a new name: run-…]")
_provider = click.option(
    "--provider", metavar="local|kind|existing", help="What makes or finds the cluster. [default: local]"
)
kubernetes = click.option(
    "--kubernetes", metavar="VERSION", help="Minor (1.37) or patch (1.37.1). [default: the newest]"
)
_nodes = click.option("--nodes", type=int, metavar="N", help="Worker nodes, 1 to 64. [default: 2]")
_hardware = click.option("--hardware", metavar="NAME|FILE", help="The hardware that the fake driver pretends to have.")
feature_gate = click.option(
    "--feature-gate", "feature_gates", multiple=True, metavar="K=V", callback=_gates, help="A feature gate; repeatable."
)
_runtime_config = click.option(
    "--runtime-config", multiple=True, metavar="K=V", callback=_runtime, help="An API group or version; repeatable."
)
_kubelet = click.option("--kubelet", metavar="VERSION", help="Another version for the kubelets, as during an upgrade.")
_node_image = click.option("--node-image", metavar="IMAGE", help="kind: the nodes' image. [default: kind's own]")
_kubeconfig = click.option("--kubeconfig", type=_PATH, metavar="FILE", help="existing: the kubeconfig of the cluster.")
_context = click.option("--context", metavar="NAME", help="existing: the kubeconfig's context. [default: the current]")
_allow = click.option(
    "--allow",
    type=click.Choice(["read-only", "workloads", "driver", "restart"]),
    help="existing: what tests may do to the cluster. [default: workloads]",
)
_reboot_command = click.option(
    "--reboot-command",
    metavar="COMMAND",
    help="existing, --allow restart: reboots the node that it gets as last argument.",
)
_workload_image = click.option(
    "--workload-image", metavar="IMAGE", help="The image of test pods, instead of the one that is built."
)
_driver_image = click.option(
    "--driver-image", metavar="IMAGE", help="The image of the fake driver, instead of the one that is built."
)
_binaries_from = click.option(
    "--binaries-from",
    multiple=True,
    metavar="SOURCE",
    callback=lambda _, __, words: _split(words),
    help="Where programs come from: a folder, cache, download, build or system; repeatable.",
)


def testbed(command: Command) -> Command:
    """Add all options that describe a new testbed, except for its driver."""
    all_of_them = (
        _config, _name, _provider, kubernetes, _kubelet, _nodes, _hardware, feature_gate, _runtime_config,
        _node_image, _kubeconfig, _context, _allow, _reboot_command, _workload_image, _driver_image, _binaries_from,
    )  # fmt: skip
    for option in reversed(all_of_them):
        command = option(command)
    return command


def driver_files(names: Iterable[str]) -> list[Path]:
    """Return the driver files with these names or paths."""
    return [path for name in names if (path := effective(None, {"driver": name}).driver)]


def configuration(flags: Mapping[str, Any]) -> TestbedConfig:
    """Return the effective configuration: the options of `testbed` and `driver`, over the file of `--config`, over the defaults."""
    file = load_testbed_file(flags["config"]) if flags.get("config") else None
    return effective(file, {key: value for key, value in flags.items() if key != "config"})


def print_json(data: Any) -> None:
    """Print data as JSON. Paths and enums become text."""
    click.echo(json.dumps(data, indent=2, default=str, ensure_ascii=False))

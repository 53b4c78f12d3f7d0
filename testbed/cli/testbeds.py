"""up, down, status, logs: testbeds that stay. Parses, calls bringup, prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from testbed import bringup
from testbed.bringup import health, planning, state
from testbed.bringup import logs as gathered
from testbed.cli import options
from testbed.copying import copy_tree
from testbed.errors import TestbedError, UsageError
from testbed.models.config import TestbedConfig
from testbed.models.driver_file import load_driver_file
from testbed.models.status import TestbedStatus
from testbed.progress import Progress
from testbed.runs import several
from testbed.waiting import set_patience

T = TypeVar("T")


@click.command()
@options.testbed
@options.drivers
@options.patience
@click.option("-v", "--verbose", is_flag=True, help="Print the effective configuration first.")
@click.option("--plan", is_flag=True, help="Show what would be made; change nothing.")
@options.output_format
def up(drivers: tuple[str, ...], patience: float, verbose: bool, plan: bool, output: str, **flags: Any) -> None:
    """Make a testbed that stays, with a driver. Further drivers are installed by the first one."""
    config = options.configuration({**flags, "driver": drivers[0] if drivers else None})
    further = options.driver_files(drivers[1:])
    several.refuse_further_installations(config.driver, further)
    if plan:
        _print_plan(config, output)
        return
    if output == "json":
        raise UsageError("-o json is for --plan", hint="dra-testbed status -o json shows a testbed that is up")
    progress = Progress()
    if verbose:
        progress.say(config.as_yaml())
    set_patience(patience)
    testbed = bringup.bring_up(config, progress)
    for each in map(load_driver_file, further):
        with progress.step(f"driver {each.driver}"):
            several.wait_until_ready(testbed, each)
    kubeconfig, shown = testbed.folder / "kubeconfig", "resourceslices" if config.driver else "nodes"
    click.echo(
        f"testbed {testbed.name} is up\n\n  export KUBECONFIG={kubeconfig}\n  kubectl get {shown}\n\n"
        f"remove it: dra-testbed down --name {testbed.name}"
    )


@click.command()
@options.name
@click.option("--all", "everything", is_flag=True, help="Remove every testbed of this user.")
@click.option("--forget", is_flag=True, help="existing: delete nothing in the cluster, because it no longer exists.")
def down(name: str, everything: bool, forget: bool) -> None:
    """Remove a testbed and everything that belongs to it. It is no error if there is none."""
    source = click.get_current_context().get_parameter_source("name")
    if everything and source is ParameterSource.COMMANDLINE:
        raise UsageError("--all removes every testbed, --name one", hint="leave one of them out")

    def remove(each: str) -> None:
        if not bringup.tear_down(each, Progress(), forget=forget):
            click.echo(f"there is no testbed {each}")

    _raise_all(_for_each(state.names() if everything else [name], remove)[1])


def _for_each(names: Iterable[str], work: Callable[[str], T]) -> tuple[list[T], list[TestbedError]]:
    """Return the results for all testbeds, and the errors: a damaged testbed does not affect the others."""
    done, errors = [], []
    for name in names:
        try:
            done.append(work(name))
        except TestbedError as failure:
            errors.append(failure)
    return done, errors


def _raise_all(errors: list[TestbedError]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise TestbedError("\n".join(map(str, errors)))


def _print_plan(config: TestbedConfig, output: str) -> None:
    plan, _ = planning.plan(config)
    if output == "json":
        options.print_json(plan.as_data())
        return
    for line in plan.as_lines():
        click.echo(line)


@click.command()
@click.option("--name", help="One testbed; otherwise all.")
@options.output_format
def status(name: str | None, output: str) -> None:
    """Show what runs where, and what is wrong with it."""
    if name is not None:
        _show_status(health.status_of(name), output)
        return
    found, errors = _for_each(state.names(), health.status_of)
    if output == "json":
        options.print_json([each.model_dump(mode="json", by_alias=True) for each in found])
    elif not found and not errors:
        click.echo("no testbeds; dra-testbed up makes one")
    else:
        for each in found:
            _show_status(each, output)
    _raise_all(errors)


def _show_status(found: TestbedStatus, output: str) -> None:
    if output == "json":
        options.print_json(found.model_dump(mode="json", by_alias=True))
    else:
        click.echo(found.as_text())


@click.command()
@options.name
@click.argument("component", required=False)
@click.option("--into", type=click.Path(path_type=Path), help="Copy all logs into a folder instead of printing.")
def logs(name: str, component: str | None, into: Path | None) -> None:
    """List a testbed's logs, print one, or copy all; also of a failed `up`."""
    with gathered.collected(name) as folder:
        if into:
            copy_tree(folder, ".", into)
            click.echo(f"copied to {into}")
        elif component:
            click.echo(gathered.read(folder, component), nl=False)
        else:
            for each in gathered.listed(folder):
                click.echo(each)

"""run: judge a driver, or show with --plan what would be judged. Builds the run request, calls `testbed.runs`, prints."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import click

from testbed.cli import options
from testbed.conformance import profiles
from testbed.conformance.selection import Facts
from testbed.errors import UsageError
from testbed.models.config import TestbedConfig
from testbed.models.requirement_enums import Tier
from testbed.models.run_request import FailOn, Keep, RunRequest, run_request
from testbed.progress import Progress
from testbed.reporting import earlier_report, terminal
from testbed.runs import several
from testbed.runs.dry_run import RunPlan, plan_run
from testbed.runs.execution import execute, target


class _Workers(click.IntRange):
    """A number of pytest's workers, or `auto`."""

    def __init__(self) -> None:
        super().__init__(0, 64)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "auto" else super().convert(value, param, ctx)


@click.command()
@click.option("--testbed", metavar="NAME", help="A testbed that is up. Without it, one is made for the run.")
@options.testbed
@options.drivers
@click.option(
    "--tier",
    "tiers",
    type=click.Choice([tier.value for tier in Tier]),
    multiple=True,
    help="Only this tier; repeatable.",
)
@click.option(
    "--profile",
    metavar="smoke|core|full",
    help="The requirements to judge by; smoke is never conformant. [default: core; full with -k or --tier]",
)
@click.option(
    "-k", "keyword", default="", metavar="EXPRESSION", help="Only tests whose names or IDs match, as in pytest."
)
@click.option("-n", "workers", type=_Workers(), default="auto", show_default=True, help="Tests at once; 0: no workers.")
@click.option("-v", "--verbose", is_flag=True, help="A line for each test, with its seconds.")
@click.option("--report", type=click.Path(path_type=Path), default="dra-testbed-report", help="The report folder.")
@click.option(
    "--keep",
    type=click.Choice(get_args(Keep)),
    default="never",
    help="When to keep a testbed that was made for the run. [default: never]",
)
@click.option(
    "--fail-on",
    type=click.Choice(get_args(FailOn)),
    default="must",
    show_default=True,
    help="The lowest level of a requirement whose failure fails the run; others are shown and counted.",
)
@click.option(
    "--known", is_flag=True, help="Failures that the driver file lists under `known` do not affect the exit code."
)
@click.option(
    "--check/--no-check",
    default=True,
    help="Compare first what the probe shows with and without a device on each node. [default: check]",
)
@click.option(
    "--failed",
    metavar="REPORT",
    type=click.Path(path_type=Path),
    help="Only what failed in the report in this folder, or has no answer there.",
)
@options.patience
@click.option("--plan", is_flag=True, help="Show which requirements would be judged and which not; change nothing.")
@options.output_format
def run(output: str, **flags: Any) -> None:
    """Judge a driver: make a testbed, run the suites, print a verdict, write a report folder, remove the testbed."""
    plan = flags["plan"]
    if output == "json" and not plan:
        raise UsageError("-o json is for --plan", hint="the report of a run is report.yaml in its report folder")
    requests = _requests(flags)
    if flags["failed"]:
        _compare_driver(flags["failed"], requests[0])
    if plan:
        _print_plan(plan_run(requests[0]), output)
        return
    raise SystemExit(execute(*requests))


def configured(words: Sequence[str]) -> TestbedConfig:
    """Return the configuration of the testbed that `run` with these words would make."""
    given = _of_first(run.make_context("run", list(words)).params)
    return options.configuration(_of_testbed({name: given[name] for name in given if name != "output"}))


def _of_first(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags with the first of the drivers alone: the one that a new testbed installs."""
    drivers = flags["drivers"]
    return {**{name: flags[name] for name in flags if name != "drivers"}, "driver": drivers[0] if drivers else None}


def _requests(flags: Mapping[str, Any]) -> list[RunRequest]:
    """Return a request for each driver. With several, each has a report folder of its own in that of the run."""
    first = _request(_of_first(flags))
    drivers = flags["drivers"][1:]
    if not drivers:
        return [first]
    if flags["failed"] or flags["plan"]:
        raise UsageError("--failed and --plan are for one driver", hint="name one --driver")
    again = {name: value for name, value in _of_first(flags).items() if name in RunRequest.model_fields}
    again |= {"profile": first.profile, "testbed": first.testbed, "failed": ()}
    return several.with_report_folders([first, *(run_request({**again, "driver": each}) for each in drivers)])


def _request(flags: Mapping[str, Any]) -> RunRequest:
    of_run = {name: flags[name] for name in RunRequest.model_fields if name in flags}
    of_run["failed"] = earlier_report.failed_in(flags["failed"]) if flags["failed"] else ()
    narrowed_by = [*flags["tiers"], flags["keyword"].strip(), flags["failed"]]
    of_run["profile"] = profiles.select_profile(flags["profile"], narrowed_by)
    of_testbed = _of_testbed(flags)
    if flags["testbed"] is None:
        return run_request(of_run, _new_testbed(of_testbed))
    for name, value in of_testbed.items():
        if value and name != "driver":
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{flag} is for a new testbed, but --testbed {flags['testbed']} is up", hint="leave one of them out"
            )
    return run_request(of_run)


def _compare_driver(report: Path, request: RunRequest) -> None:
    """Refuse an earlier report about another driver. Print a note if the driver file has changed since."""
    note = earlier_report.compare_driver(report, request.driver_file(target(request)[1]))
    if note:
        Progress().say(f"note: {note}")


def _of_testbed(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that describe a new testbed."""
    of_run = RunRequest.model_fields.keys() - {"driver"} | {"plan"}
    return {name: value for name, value in flags.items() if name not in of_run}


def _new_testbed(flags: Mapping[str, Any]) -> TestbedConfig:
    """Return the configuration of a testbed for one run. Without --name it gets a name that no testbed has."""
    config = options.configuration(flags)
    return replace(config, name=f"run-{secrets.token_hex(3)}") if config.name == "default" else config


def _print_plan(found: RunPlan, output: str) -> None:
    if output == "json":
        options.print_json([asdict(each) for each in found.decisions])
        return
    for line in found.testbed.as_lines() if found.testbed else ():
        click.echo(line)
    if found.facts.gates_assumed:
        gates = ", ".join(_with_state(found.facts))
        click.echo(f"assumed      {gates}: the defaults of Kubernetes {found.facts.kubernetes}")
    rows = [[each.id, each.plan, each.reason or each.makes] for each in found.decisions]
    terminal.print_rows(["id", "plan", "why not, or what it makes"], rows)


def _with_state(facts: Facts) -> list[str]:
    return [f"{gate} {'on' if gate in facts.gates else 'off'}" for gate in sorted(facts.gates_assumed)]

"""run, list, explain: judge a driver, and show what there is to judge. Parses, calls bringup and conformance, prints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli import options, target
from testbed.cli.target import Wanted
from testbed.errors import UsageError
from testbed.waiting import set_patience

if TYPE_CHECKING:
    from testbed.bringup.planning import Plan
    from testbed.conformance.catalogue import Catalogue, Entry
    from testbed.conformance.requirement import Requirement
    from testbed.conformance.selection import Choice, Facts
    from testbed.models.config import TestbedConfig
    from testbed.runs.early_report import Opening

_TIERS = click.Choice(["static", "wire", "e2e", "disruptive"])
_KEEP = click.Choice(["never", "on-failure", "always"])
_OF_THE_JUDGING = ("tiers", "profile", "keyword", "workers", "report", "patience", "verbose")
_OF_THE_COMMAND = ("testbed", "keep", "plan", "output")


class _Workers(click.IntRange):
    """A number of pytest's workers, or the word for as many as cores and devices allow."""

    def __init__(self) -> None:
        super().__init__(0, 64)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "auto" else super().convert(value, param, ctx)


@click.command()
@click.option("--testbed", metavar="NAME", help="A testbed that is up. Without it one is made for the run.")
@options.testbed
@options.driver
@click.option("--tier", "tiers", type=_TIERS, multiple=True, help="Only this tier; repeatable.")
@click.option(
    "--profile", metavar="core|full", help="The requirements to judge by. [default: core; full with -k or --tier]"
)
@click.option(
    "-k", "keyword", default="", metavar="EXPRESSION", help="Only tests whose names or ids match, as in pytest."
)
@click.option("-n", "workers", type=_Workers(), default="auto", show_default=True, help="Tests at once; 0: no workers.")
@click.option("-v", "--verbose", is_flag=True, help="A line for each test, with its seconds.")
@click.option("--report", type=click.Path(path_type=Path), default="dra-testbed-report", help="The report folder.")
@click.option("--keep", type=_KEEP, default="never", help="Whether the testbed stays. [default: never]")
@options.patience
@click.option("--plan", is_flag=True, help="Show what would be run and what not; touch nothing.")
@options.output_format
def run(testbed: str | None, keep: str, plan: bool, output: str, **flags: Any) -> None:
    """Judge a driver: a testbed, the suites, a verdict, a report folder; then all is removed again."""
    ours = {name: flags.pop(name) for name in _OF_THE_JUDGING}
    wanted = Wanted(testbed, keep, flags)
    _check(wanted, ours["profile"])
    chosen = _chosen(ours["keyword"])
    if plan:
        _print_plan(wanted, ours, output, chosen)
        return
    if output == "json":
        raise UsageError("-o json is for --plan", hint="the report of a run is report.yaml in its report folder")
    from testbed.conformance import events  # noqa: PLC0415 - so that --help stays quick

    ours["report"] = ours["report"].absolute()
    set_patience(ours["patience"])  # the testbed is brought up here, the suites run in a process of their own
    found = target.checked(wanted)
    opening = _opening(found, ours)
    with events.reserved(ours["report"]), target.there(wanted, found, opening) as name:
        wanted.code = _judge(name, wanted, ours)
    raise SystemExit(wanted.code)


def configured(words: Sequence[str]) -> TestbedConfig:
    """What the testbed would be that a run of these words makes."""
    given = run.make_context("run", list(words)).params
    return options.configuration(
        {name: value for name, value in given.items() if name not in (*_OF_THE_JUDGING, *_OF_THE_COMMAND)}
    )


@click.command("list")
@options.output_format
def list_(output: str) -> None:
    """The requirements that there are."""
    from testbed.reporting import table  # noqa: PLC0415 - so that --help stays quick

    entries = _catalogue().every
    if output == "json":
        options.print_json([_data(entry) for entry in entries])
        return
    table.print_rows(["id", "level", "tier", "requirement"], [_row(entry) for entry in entries])


@click.command()
@click.argument("requirement", metavar="ID")
@options.output_format
def explain(requirement: str, output: str) -> None:
    """One requirement: its sentence and source, the manifest and the test that check it."""
    from testbed.conformance.requirement import GIVEN  # noqa: PLC0415 - so that --help stays quick

    entry = _catalogue().get(requirement)
    manifests = {name: _manifest(name) for name in entry.manifests}
    if output == "json":
        options.print_json({**_data(entry), "manifests": manifests, "testSource": entry.source})
        return
    each = entry.requirement
    click.echo(f"{each.id}  {each.level}, {each.tier}, since Kubernetes {each.kubernetes}\n\n{each.sentence}\n")
    click.echo(f"source:   {each.source}\ndevices:  {_devices(each)}, nodes: {each.nodes}")
    if each.features or each.gates:
        click.echo(f"features: {', '.join(each.features) or 'none'}; feature gates: {', '.join(each.gates) or 'none'}")
    for word in each.given:
        click.echo(f"given:    {GIVEN[word]}")
    proof = ", ".join(each.mutants) or f"unproven: {each.unproven or 'no known mutant'}"
    click.echo(f"fails on: {proof}\ntest:     {entry.test or 'none yet'}")
    for name, text in manifests.items():
        click.echo(f"\n--- {name}\n{text}", nl=False)
    if entry.function:
        click.echo(f"\n--- {entry.path.name}\n{entry.source}", nl=False)


def _check(wanted: Wanted, profile: str | None) -> None:
    """Known to be wrong before anything is made: no such profile, other properties for a testbed that is up."""
    from testbed.conformance import profiles  # noqa: PLC0415 - so that --help stays quick

    if profile is not None:
        profiles.profile(profile)
    given = [name for name, value in wanted.flags.items() if value and name != "driver"]
    if wanted.testbed is not None and given:
        flag = f"--{given[0].replace('_', '-')}"
        raise UsageError(
            f"{flag} is for a new testbed, but --testbed {wanted.testbed} is up", hint="leave one of them out"
        )


def _chosen(keyword: str) -> frozenset[str] | None:
    """The tests that -k chooses, None without it. An expression that is wrong or chooses nothing is known before anything is made."""
    if not keyword.strip():
        return None
    from testbed.runs import pytest_process  # noqa: PLC0415 - so that --help stays quick

    return pytest_process.chosen(keyword)


def _judge(name: str, wanted: Wanted, ours: dict[str, Any]) -> int:
    from testbed.reporting import report  # noqa: PLC0415 - so that --help stays quick
    from testbed.runs.pytest_process import SuiteRun, run_suites  # noqa: PLC0415

    driver = options.configuration(wanted.flags).driver if wanted.flags["driver"] else None
    return report.status_of(run_suites(SuiteRun(name, driver=driver, **ours)))


def _opening(found: target.Target, ours: dict[str, Any]) -> Opening:
    from testbed.runs.early_report import Opening, environment_of, first_event  # noqa: PLC0415 - so that --help stays quick

    first = first_event(found.driver, environment_of(found.config), _profile(ours), ours["patience"])
    return Opening(ours["report"], first)


def _profile(ours: dict[str, Any]) -> str:
    from testbed.conformance import profiles  # noqa: PLC0415 - so that --help stays quick

    return ours["profile"] or profiles.default([*ours["tiers"], ours["keyword"]])


def _print_plan(wanted: Wanted, ours: dict[str, Any], output: str, chosen: frozenset[str] | None) -> None:
    from testbed.conformance import selection  # noqa: PLC0415 - so that --help stays quick
    from testbed.reporting import table  # noqa: PLC0415 - so that --help stays quick

    found, plan = _facts(wanted)
    catalogue = _catalogue()
    every = [entry.requirement for entry in catalogue.entries]
    choices = selection.plan(every, found, frozenset(ours["tiers"]), _profile(ours))
    decided = [(choice, catalogue.get(choice.requirement.id)) for choice in choices]
    decisions = [_decision(selection.narrowed(choice, _is_among(entry, chosen)), entry) for choice, entry in decided]
    if output == "json":
        options.print_json(decisions)
        return
    for line in plan.as_lines() if plan else ():
        click.echo(line)
    if found.gates_assumed:
        click.echo(f"assumed      {', '.join(_with_state(found))}: as Kubernetes {found.kubernetes} has them by itself")
    rows = [[each["id"], each["plan"], each["reason"] or each["makes"]] for each in decisions]
    table.print_rows(["id", "plan", "why not, or what it makes"], rows)


def _with_state(found: Facts) -> list[str]:
    return [f"{gate} {'on' if gate in found.gates else 'off'}" for gate in sorted(found.gates_assumed)]


def _facts(wanted: Wanted) -> tuple[Facts, Plan | None]:
    from testbed.bringup import planning  # noqa: PLC0415 - so that --help stays quick
    from testbed.conformance import facts  # noqa: PLC0415
    from testbed.models.driver_file import load_driver_file  # noqa: PLC0415

    found = target.checked(wanted)
    config, testbed, driver_file = found.config, found.testbed, load_driver_file(found.driver)
    if testbed is not None:
        return facts.gather(testbed.kube, driver_file, testbed.cluster.capabilities, testbed.owner), None
    plan, existing = planning.plan(config)
    if existing is None:
        made_of = config.kubernetes, config.nodes, driver_file.features, config.feature_gates, config.kubelet or ""
        return facts.expected(*made_of), plan
    return facts.gather(existing.kube, driver_file, existing.cluster.capabilities), plan


def _decision(choice: Choice, entry: Entry) -> dict[str, str]:
    plan = choice.verdict or "run"
    return {
        "id": choice.requirement.id,
        "plan": plan,
        "reason": choice.reason,
        "makes": _made(entry) if plan == "run" else "",
    }


def _is_among(entry: Entry, chosen: frozenset[str] | None) -> bool:
    return chosen is None or any(entry.test.endswith(f"/{test}") for test in chosen)


def _made(entry: Entry) -> str:
    """What a test makes: a namespace of its own, and in it what its manifests hold."""
    kinds = [kind for name in entry.manifests for kind in re.findall(r"^kind: (\w+)", _manifest(name), re.MULTILINE)]
    return f"namespace dra-{entry.requirement.id.lower()}-…: {', '.join(dict.fromkeys(kinds))}" if kinds else ""


def _catalogue() -> Catalogue:
    from testbed import folders  # noqa: PLC0415 - so that --help stays quick
    from testbed.conformance import catalogue  # noqa: PLC0415

    return catalogue.read([folders.data("suites")])


def _manifest(name: str) -> str:
    from testbed import folders  # noqa: PLC0415 - so that --help stays quick

    return (folders.data("manifests") / "suites" / name).read_text()


def _data(entry: Entry) -> dict[str, Any]:
    return {**asdict(entry.requirement), "test": entry.test}


def _devices(each: Requirement) -> str:
    return f"{each.devices}{' on one node' if each.devices > 1 and not each.spread else ''}"


def _row(entry: Entry) -> list[str]:
    each = entry.requirement
    return [each.id, each.level, each.tier, each.sentence if entry.function else f"{each.sentence} (no test yet)"]

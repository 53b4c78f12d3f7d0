"""driver: driver files, before anything is judged. Parses, calls onboarding, prints."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from testbed import bringup
from testbed.binaries.lock import minors
from testbed.bringup import Testbed
from testbed.cli import options
from testbed.cli.driver_init import init
from testbed.conformance import profiles
from testbed.drivers.name_checks import WrongNames
from testbed.errors import UsageError
from testbed.folders import shown
from testbed.models.config import effective
from testbed.models.driver_file import load_driver_file
from testbed.models.requirement_enums import Subject
from testbed.onboarding.checks.all_checks import check_on, name_findings
from testbed.onboarding.checks.file_findings import file_findings
from testbed.onboarding.checks.finding import Finding, error_of, with_lines
from testbed.onboarding.preview import Preview, count_levels, preview
from testbed.progress import Progress
from testbed.waiting import set_patience


@click.group()
def group() -> None:
    """Write a driver file, check it, and show what it lets the suites judge."""


group.add_command(init)


@group.command()
@click.argument("file", metavar="NAME|FILE")
@click.option("--testbed", metavar="NAME", help="A testbed that is up. Without it, one is made and removed again.")
@click.option("--offline", is_flag=True, help="Check only the file and the files that it names, without a cluster.")
@options.testbed
@options.patience
@options.output_format
def check(file: str, testbed: str | None, offline: bool, patience: float, output: str, **flags: Any) -> None:
    """Check a driver file: its keys, then its names in a cluster, then its probe with a first device on each node.

    Exits with 2 if the file is wrong, and with 1 if the driver is.
    """
    set_patience(patience)
    path = _path(file)
    found, findings = file_findings(path, flags["kubernetes"] or "")
    if found and not findings and not offline:
        try:
            with _testbed(testbed, {**flags, "driver": file}) as up:
                findings = check_on(up, found)
        except WrongNames as wrong:  # found while the driver was installed
            findings = name_findings(wrong.problems)
    _report(with_lines(findings, path), path, output, offline=offline)


@group.command()
@click.argument("file", metavar="NAME|FILE")
@options.kubernetes
@options.feature_gate
@click.option(
    "--profile", metavar="smoke|core|full", default=profiles.CORE, show_default=True, help="The requirements."
)
@options.output_format
def show(file: str, kubernetes: str | None, feature_gates: Mapping[str, bool], profile: str, output: str) -> None:
    """Show what a run would judge, and why not the rest. Needs no cluster: a cluster may still lack an ability.

    `dra-testbed run --plan` also takes an existing cluster into account.
    """
    found = preview(load_driver_file(_path(file)), kubernetes or minors()[0], profile, feature_gates)
    if output == "json":
        options.print_json(found.as_data())
        return
    _print_preview(found)


def _print_preview(found: Preview) -> None:
    classes = ", ".join(found.driver_file.devices.classes)
    click.echo(f"{found.driver_file.driver}, {classes}; profile {found.profile}, Kubernetes {found.kubernetes}\n")
    for name, state, key in found.features:
        click.echo(f"{state:<7} {name}" + (f" ({key})" if state != "yes" else ""))
    for about in Subject:
        judged, reasons = found.judged(about), found.reasons(about)
        if judged or reasons:
            click.echo(f"\nabout the {about}: {count_levels(judged)} will be judged")
        for reason, choices in reasons.items():
            click.echo(
                f"  not {count_levels(choices)}: {reason}\n    {' '.join(each.requirement.id for each in choices)}"
            )


def _path(file: str) -> Path:
    path = effective(None, {"driver": file}).driver
    if path is None:
        raise UsageError(f"{file} is no driver file", hint="name a file, or fake-gpu")
    return path


@contextmanager
def _testbed(name: str | None, flags: Mapping[str, Any]) -> Iterator[Testbed]:
    """Yield the testbed of that name, or a new one that is removed again."""
    if name is not None:
        yield bringup.attach(name)
        return
    config = options.configuration(flags)
    config = replace(config, name=f"check-{secrets.token_hex(3)}") if config.name == "default" else config
    progress = Progress()
    made = bringup.bring_up(config, progress, ephemeral=True)
    try:
        yield made
    finally:
        bringup.tear_down(made.name, progress)


def _report(findings: Sequence[Finding], path: Path, output: str, *, offline: bool) -> None:
    """Print all findings and end with the exit code of the gravest."""
    if output == "json":
        options.print_json([asdict(each) for each in findings])
    else:
        for each in findings:
            click.echo(each.describe(path))
    error = error_of(findings, path)
    if error:
        raise error if output != "json" else SystemExit(error.exit_code)
    if output != "json":
        click.echo(f"{shown(path)} {'is valid' if offline else 'matches the driver'}")

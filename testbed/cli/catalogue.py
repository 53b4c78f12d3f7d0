"""list, explain: the requirements, with their manifests and tests. Parses, reads the catalogue, prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from testbed import folders
from testbed.cli import options
from testbed.conformance import catalogue, profiles
from testbed.conformance.catalogue import Catalogue, Entry
from testbed.conformance.requirement import GIVEN, Requirement
from testbed.reporting import terminal


@click.command("list")
@click.option("--profile", metavar="smoke|core|full", help="Only the requirements of this profile. [default: full]")
@options.output_format
def list_(profile: str | None, output: str) -> None:
    """List the requirements."""
    judged = profiles.profile(profile or profiles.FULL)
    entries = [entry for entry in _catalogue().every if judged.has(entry.requirement.id)]
    if output == "json":
        options.print_json([_data(entry) for entry in entries])
        return
    terminal.print_rows(["id", "level", "tier", "requirement"], [_row(entry) for entry in entries])


@click.command()
@click.argument("requirement", metavar="ID")
@options.output_format
def explain(requirement: str, output: str) -> None:
    """Show one requirement: its sentence and source, and the manifest and test that check it."""
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
    if each.counts:
        click.echo(f"requests: {' and '.join(map(str, each.counts))} devices")
    proof = ", ".join(each.mutants) or f"unproven: {each.unproven or 'no known mutant'}"
    click.echo(f"fails on: {proof}\ntest:     {entry.test or 'none yet'}")
    for name, text in manifests.items():
        click.echo(f"\n--- {name}\n{text}", nl=False)
    if entry.function:
        click.echo(f"\n--- {entry.path.name}\n{entry.source}", nl=False)


def _catalogue() -> Catalogue:
    return catalogue.read([folders.data("suites")])


def _manifest(name: str) -> str:
    return (folders.data("manifests") / "suites" / name).read_text()


def _data(entry: Entry) -> dict[str, Any]:
    return {**asdict(entry.requirement), "test": entry.test}


def _devices(each: Requirement) -> str:
    return f"{each.devices}{' on one node' if each.devices > 1 and not each.spread else ''}"


def _row(entry: Entry) -> list[str]:
    each = entry.requirement
    return [each.id, each.level, each.tier, each.sentence if entry.function else f"{each.sentence} (no test yet)"]

"""binaries: the upstream programs of a Kubernetes version: list, fetch, pin, path. Parses, calls binaries, prints."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.table import Table

from testbed.binaries import Lock, ensure, inventory, lock_for, minors
from testbed.errors import TestbedError
from testbed.progress import Progress, Screen

_kubernetes = click.option(
    "--kubernetes",
    metavar="VERSION",
    default=lambda: minors()[0],
    show_default="the newest",
    help="Minor (1.37) or patch.",
)


@click.group(name="binaries")
def group() -> None:
    """List, fetch and pin the upstream programs."""


@group.command(name="list")
@_kubernetes
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="The output format.")
def list_programs(kubernetes: str, output: str) -> None:
    """List the programs of a Kubernetes version, with those in the cache."""
    rows = _rows(lock_for(kubernetes))
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table("program", "version", "cached", "path", box=None, pad_edge=False)
    for row in rows:
        table.add_row(str(row["program"]), str(row["version"]), _cached(row), str(row["path"] or "-"))
    Screen(soft_wrap=True, highlight=False, width=400).print(
        table
    )  # a narrow terminal wraps lines and truncates no name


@group.command()
@_kubernetes
@click.option(
    "--binaries-from",
    "sources",
    multiple=True,
    metavar="SOURCE",
    help="cache, download, build, system or a folder; repeatable.",
)
@click.option("--verify", is_flag=True, help="Verify the checksums of cached programs.")
@click.argument("programs", nargs=-1)
def fetch(kubernetes: str, sources: tuple[str, ...], verify: bool, programs: tuple[str, ...]) -> None:
    """Put the named programs into the cache, or all."""
    lock = lock_for(kubernetes)
    ensure(lock, programs or tuple(lock.programs), progress=Progress(), sources=sources or None, verify=verify)


@group.command()
@_kubernetes
@click.option(
    "--arch", "arches", multiple=True, type=click.Choice(["amd64", "arm64"]), help="Repeatable; default: all."
)
@click.argument("programs", nargs=-1)
def pin(kubernetes: str, arches: tuple[str, ...], programs: tuple[str, ...]) -> None:
    """Download the named programs, or all, and lock the digests of the files.

    Later downloads of the same files must match. Digests are written into ci/versions/digests.yaml; run this in a checkout.
    """
    from testbed.binaries import pin as downloads  # noqa: PLC0415 - not needed by the other commands

    lock = lock_for(kubernetes)
    done = downloads.pin(lock, programs or tuple(lock.programs), progress=Progress(), arches=arches)
    click.echo(f"{len(done.added)} digests added, {done.kept} were there: {done.file}")


@group.command()
@_kubernetes
@click.argument("program")
def path(kubernetes: str, program: str) -> None:
    """Print the path of a cached program, for scripts."""
    lock = lock_for(kubernetes)
    held = inventory(lock)[lock.program(program).name]
    if held is None:
        raise TestbedError(
            f"{program} of Kubernetes {lock.kubernetes} is not in the cache",
            hint=f"dra-testbed binaries fetch --kubernetes {lock.minor} {program}",
        )
    click.echo(held[0])


def _rows(lock: Lock) -> list[dict[str, str | None]]:
    rows: list[dict[str, str | None]] = []
    for name, held in inventory(lock).items():
        where: Path | None = held[0] if held else None
        rows.append(
            {
                "program": name,
                "version": lock.program(name).version,
                "cached": held[1].version if held else None,
                "origin": held[1].origin if held else None,
                "path": str(where) if where else None,
            }
        )
    return rows


def _cached(row: dict[str, str | None]) -> str:
    if not row["cached"]:
        return "no"
    other = "" if row["cached"] == row["version"] else f" {row['cached']}"
    return f"{row['origin']}{other}"

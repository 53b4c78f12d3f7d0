"""bench: the measurements. Parses, measures, prints a table."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.table import Table

from testbed.bench.statistics import Figure
from testbed.cli import options
from testbed.progress import Progress


@click.group()
def group() -> None:
    """Measure, each figure with its peer in the same run."""


@group.command()
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="How often.")
@options.testbed
@options.driver
@options.output_format
def up(rounds: int, output: str, **flags: Any) -> None:
    """How long `up` and `down` take, phase by phase, and what an idle testbed weighs."""
    from testbed.bench.up import measure  # noqa: PLC0415 - so that --help stays quick

    _show(measure(options.configuration(flags), rounds, Progress()), rounds, output)


@group.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1, 100), help="How often.")
@click.option("--profile", default="full", show_default=True, metavar="core|full", help="The requirements to run.")
@options.testbed
@options.driver
@options.output_format
def suites(rounds: int, profile: str, output: str, **flags: Any) -> None:
    """How long the suites take, with one worker and with two, the slowest of them, and what a scenario and a claim cost."""
    from testbed.bench.suites import measure  # noqa: PLC0415 - so that --help stays quick

    _show(measure(options.configuration(flags), rounds, profile, Progress()), rounds, output)


def _show(found: list[Figure], rounds: int, output: str) -> None:
    if output == "json":
        options.print_json([figure.as_data() for figure in found])
        return
    table = Table("what", "median", "spread", "bound", title=f"medians of {rounds}")
    for figure in found:
        table.add_row(*figure.as_row())
    Console().print(table)

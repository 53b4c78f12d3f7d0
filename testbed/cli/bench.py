"""bench: the measurements. Parses, measures, prints a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from testbed.bench import driver as driver_bench
from testbed.bench import suites as suites_bench
from testbed.bench import up as up_bench
from testbed.bench.page import render_page
from testbed.bench.statistics import Figure
from testbed.binaries import minors
from testbed.cli import options
from testbed.progress import Progress, Screen


@click.group()
def group() -> None:
    """Measure, and compare each figure with a peer in the same run."""


@group.command()
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="How often to measure.")
@options.testbed
@options.driver
@options.output_format
def up(rounds: int, output: str, **flags: Any) -> None:
    """Measure the phases of `up` and `down`, and what an idle testbed uses."""
    _show(up_bench.measure(options.configuration(flags), rounds, Progress()), rounds, output)


@group.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1, 100), help="How often to measure.")
@click.option(
    "--profile", default="full", show_default=True, metavar="smoke|core|full", help="The requirements to run."
)
@options.testbed
@options.driver
@options.output_format
def suites(rounds: int, profile: str, output: str, **flags: Any) -> None:
    """Measure the suites as in `run`, with one worker and two; the slowest tests; the cost of a scenario and a claim."""
    _show(suites_bench.measure(options.configuration(flags), rounds, profile, Progress()), rounds, output)


def _show(found: list[Figure], rounds: int, output: str) -> None:
    if output == "json":
        options.print_json([figure.as_data() for figure in found])
        return
    table = Table("what", "median", "spread", "bound", title=f"medians of {rounds}")
    for figure in found:
        table.add_row(*figure.as_row())
    Screen().print(table)


@group.command()
@click.option(
    "--claims", default=200, show_default=True, type=click.IntRange(1, 1000), help="Claims in each measurement."
)
@click.option(
    "--runs",
    default=3,
    show_default=True,
    type=click.IntRange(1, 100),
    help="Rounds. Each measures all drivers, in another order.",
)
@click.option(
    "--idle",
    default=20.0,
    show_default=True,
    type=click.FloatRange(0.1, 600),
    help="How many seconds to observe an idle driver.",
)
@click.option("--kubernetes", metavar="VERSION", help="The version of the API server. [default: the newest]")
@click.option(
    "--build/--no-build", default=True, help="Build the Go peers if they are not in the cache, or leave them out."
)
@click.option(
    "--write", "page", type=click.Path(path_type=Path, dir_okay=False), help="Write the results to a Markdown file."
)
@options.output_format
def driver(
    claims: int, runs: int, idle: float, kubernetes: str | None, build: bool, page: Path | None, output: str
) -> None:
    """Measure speed and memory of the fake driver and of two drivers in Go, called as the kubelet calls them."""
    found = driver_bench.measure(
        driver_bench.DriverBenchPlan(kubernetes or minors()[0], claims, runs, idle, build), Progress()
    )
    if page:
        page.write_text(render_page(found, claims, runs))
    if output == "json":
        options.print_json(found.as_data())
        return
    table = Table(*found.header(), title=f"medians of {runs}, with their spread")
    for row in found.rows():
        table.add_row(*row)
    console = Screen(width=None if Screen().is_terminal else 240)
    console.print(table)
    for reason in found.failure_lines():
        console.print(f"no number: {reason}", markup=False)

"""driver init: write a driver file for a driver that is observed on a testbed. Parses, calls onboarding, prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from testbed.cli import options
from testbed.errors import UsageError
from testbed.onboarding.discovery.initialize import InitRequest, initialize
from testbed.onboarding.discovery.questions import Questions
from testbed.onboarding.discovery.sources import Source, find_source, process_source, split_command
from testbed.progress import Progress
from testbed.waiting import set_patience

_PATH = click.Path(exists=True, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=_PATH,
    metavar="PATH",
    help="Manifests (a file or folder; repeatable), a kustomization, or a Helm chart. Without it, the driver is installed already.",
)
@click.option(
    "--process",
    default="",
    metavar="COMMAND",
    help="A program that is the driver, one process on each node; `{{ node }}` is its name. Only with provider local.",
)
@click.option("--values", type=_FILE, metavar="FILE", help="Values of the chart.")
@click.option(
    "--image", "images", multiple=True, type=_FILE, metavar="ARCHIVE", help="Load the images of an archive; repeatable."
)
@click.option(
    "--companion",
    "companions",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="Manifests that are installed before the driver, such as a DaemonSet that makes devices; repeatable.",
)
@click.option("--driver-name", default="", metavar="NAME", help="The driver in ResourceSlices, if there are several.")
@click.option("--testbed", "testbed_name", default="", metavar="NAME", help="A testbed that is up, and stays.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="The driver file. [default: NAME.yaml]")
@click.option("--yes", is_flag=True, help="Ask nothing: take the default answers, and write the questions as comments.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@options.testbed
@options.patience
def init(sources: tuple[Path, ...], yes: bool, patience: float, **flags: Any) -> None:
    """Write a driver file: install a driver on a testbed, and observe what it publishes and what containers get from it.

    The testbed is removed again. With --kubeconfig, the driver is observed in a cluster where it is installed already.
    """
    request = _request(sources, flags)
    set_patience(patience)
    questions = Questions(None if yes or not sys.stdin.isatty() else _ask)
    findings = initialize(request, questions, Progress())
    click.echo(f"wrote {request.file}")
    for each in questions.open:
        click.echo(f"  question about spec.{each.key}: {each.text}")
    for finding in findings:
        click.echo(f"  {finding.describe(request.file)}")
    click.echo(f"next: dra-testbed run --driver {request.file}")


def _request(sources: tuple[Path, ...], flags: dict[str, Any]) -> InitRequest:
    own = {name: flags.pop(name) for name in ("images", "driver_name", "output", "force")}
    testbed, output = flags.pop("testbed_name"), own["output"]
    source = _source(sources, output.stem if output else "", own["images"], flags)
    config = options.configuration({**flags, "driver": "none", "provider": _provider(flags, source)})
    if not source.installs and not testbed and config.provider != "existing":
        raise UsageError(
            "there is no driver to describe",
            hint="--from with its manifests, --process with its command, or --kubeconfig of a cluster where it runs",
        )
    return InitRequest(source, config, testbed, **own)


def _source(sources: Sequence[Path], name: str, images: Sequence[Path], flags: dict[str, Any]) -> Source:
    process, values, companions = (flags.pop(each) for each in ("process", "values", "companions"))
    if not process:
        return find_source(sources, values, images, companions, name)
    if sources or values or images:
        raise UsageError("--process is a program of this host", hint="leave --from, --values and --image out")
    try:
        return process_source(split_command(process), companions, name)
    except ValueError as wrong:
        raise UsageError(f"--process {process!r}: {wrong}", hint="quote it as in a shell") from wrong


def _provider(flags: dict[str, Any], source: Source) -> str | None:
    provider = flags.get("provider")
    if not flags.get("kubeconfig") and provider != "existing":
        return provider
    if source.installs:
        raise UsageError(
            "init installs drivers only on testbeds that it makes",
            hint="install the driver in the cluster first, and leave --from and --process out",
        )
    return "existing"


def _ask(question: str, answers: Sequence[str], default: str) -> str:
    return str(click.prompt(question, default=default, type=click.Choice(answers)))

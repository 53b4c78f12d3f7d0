"""`dra-testbed images`: the container images that a testbed needs, which of them are in the cache, and how to make them."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import get_args

import click
from rich.table import Table

from testbed.binaries import lock_for, minors
from testbed.images import Image, basics, cached_node, docker, driver
from testbed.images import node as make_node
from testbed.images.driver import RELEASE, BuildMethod
from testbed.images.driver import cached as cached_driver
from testbed.progress import Progress, Screen

NAMES = ("sandbox", "workload", "driver")


@click.group(name="images")
def group() -> None:
    """The container images: which are in the cache, and how to make the rest."""


@group.command(name="list")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="How to print it.")
def list_images(output: str) -> None:
    """The images of a testbed, and whether they are in the cache; of kind's node images those that are."""
    nodes = {f"node {minor}": cached_node(lock_for(minor)) for minor in minors()}
    rows = [_row(name, _cached(name)) for name in NAMES] + [_row(name, image) for name, image in nodes.items() if image]
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table("image", "cached", "size", "reference", "digest", box=None, pad_edge=False)
    for row in rows:
        cached = "yes" if row["cached"] else "no"
        table.add_row(
            str(row["image"]), cached, _megabytes(row["size"]), str(row["reference"] or "-"), str(row["digest"] or "-")
        )
    Screen(soft_wrap=True, highlight=False, width=400).print(table)  # a narrow terminal breaks lines, and no name


@group.command()
@click.option(
    "--with",
    "way",
    type=click.Choice(get_args(BuildMethod)),
    help="Insist on one way to make the driver's image. Without it: Docker where an engine answers, else packages.",
)
@click.argument("names", metavar="[NAME]...", nargs=-1, type=click.Choice(NAMES))
def build(way: BuildMethod | None, names: tuple[str, ...]) -> None:
    """Make images: those that are named, or all.

    What the cache holds of the same content is taken from there; the driver's image is made anew
    when the distribution has newer packages for it.
    """
    progress = Progress()
    for name in names or NAMES:
        began = time.monotonic()
        _tell(_made(name, way, progress), began)


@group.command()
@click.option(
    "--as", "reference", metavar="REFERENCE", help=f"The image's name in FILE. [default for the driver: {RELEASE}]"
)
@click.argument("name", type=click.Choice(NAMES))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def save(name: str, file: Path, reference: str | None) -> None:
    r"""Write an image into FILE, for clusters that dra-testbed does not make.

    It is made first where the cache has none. Then one of these brings it to the nodes:

    \b
    kind load image-archive FILE
    ctr --namespace k8s.io images import FILE
    docker load --input FILE
    """
    image = _cached(name) or _made(name, None, Progress())
    wanted = reference or (RELEASE if name == "driver" else image.reference)
    with tempfile.TemporaryDirectory(dir=file.absolute().parent) as scratch:
        digest = docker.rewrite(image.archive, wanted, file, Path(scratch))
    click.echo(f"{wanted}  {_megabytes(file.stat().st_size)}  {digest}")


@group.command()
@click.option(
    "--kubernetes",
    metavar="VERSION",
    default=lambda: minors()[0],
    show_default="the newest",
    help="Minor (1.37) or patch.",
)
def node(kubernetes: str) -> None:
    r"""Make a kind node image, for hosts that can pull none: of Debian packages and the locked programs.

    No container engine is needed to make it. To use it with plain kind, load what is printed last:

    \b
    docker load --input ARCHIVE
    kind create cluster --image REFERENCE
    """
    began = time.monotonic()
    image = make_node(lock_for(kubernetes), Progress())
    _tell(image, began)
    click.echo(image.archive)


def _tell(image: Image, began: float) -> None:
    size = _megabytes(image.archive.stat().st_size)
    click.echo(f"{image.reference}  {size}  {image.digest}  {time.monotonic() - began:.1f} s")


def _made(name: str, way: BuildMethod | None, progress: Progress) -> Image:
    if name == "driver":
        return driver(progress, build_with=way, refresh=True)
    return (basics.sandbox if name == "sandbox" else basics.workload)(progress)


def _cached(name: str) -> Image | None:
    if name == "driver":
        return cached_driver()
    return basics.cached(basics.SANDBOX if name == "sandbox" else basics.WORKLOAD)


def _row(name: str, image: Image | None) -> dict[str, str | int | bool | None]:
    return {
        "image": name,
        "cached": image is not None,
        "reference": image.reference if image else None,
        "digest": image.digest if image else None,
        "size": image.archive.stat().st_size if image else None,
        "archive": str(image.archive) if image else None,
    }


def _megabytes(size: object) -> str:
    return f"{size / 1e6:.1f} MB" if isinstance(size, int) else "-"

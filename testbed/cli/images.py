"""images: the container images of a testbed and of drivers: list, build, save, node, program, load. Parses, calls images, prints."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
import time
from pathlib import Path
from typing import get_args

import click
from rich.table import Table

from testbed.binaries import lock_for, minors
from testbed.bringup.image_loading import load_image
from testbed.cli import options
from testbed.errors import UsageError
from testbed.images import Image, basics, cached_node, docker, driver
from testbed.images import node as make_node
from testbed.images.driver import RELEASE, BuildMethod
from testbed.images.driver import cached as cached_driver
from testbed.images.program import program as image_of_program
from testbed.progress import Progress, Screen

NAMES = ("sandbox", "workload", "driver")


@click.group(name="images")
def group() -> None:
    """List, build and save the container images."""


@group.command(name="list")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="The output format.")
def list_images(output: str) -> None:
    """List the images of a testbed, with those in the cache. Node images of kind are only listed if they are in the cache."""
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
    Screen(soft_wrap=True, highlight=False, width=400).print(
        table
    )  # a narrow terminal wraps lines and truncates no name


@group.command()
@click.option(
    "--with",
    "way",
    type=click.Choice(get_args(BuildMethod)),
    help="How to make the driver's image. [default: docker if an engine runs, otherwise packages]",
)
@click.argument("names", metavar="[NAME]...", nargs=-1, type=click.Choice(NAMES))
def build(way: BuildMethod | None, names: tuple[str, ...]) -> None:
    """Make the named images, or all.

    An image with the same content is taken from the cache. The driver's image is made again
    if the distribution has newer packages for it.
    """
    progress = Progress()
    for name in names or NAMES:
        began = time.monotonic()
        _print_made(_made(name, way, progress), began)


@group.command()
@click.option(
    "--as", "reference", metavar="REFERENCE", help=f"The image's name in FILE. [default for the driver: {RELEASE}]"
)
@click.argument("name", type=click.Choice(NAMES))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def save(name: str, file: Path, reference: str | None) -> None:
    """Write an image into FILE, for clusters that dra-testbed does not make.

    The image is made first if it is not in the cache. One of these commands loads it on the nodes:

    \b
    kind load image-archive FILE
    ctr --namespace k8s.io images import FILE
    docker load --input FILE
    """  # noqa: D301 - \b tells click not to wrap the paragraph
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
    """Make a kind node image, of Debian packages and the locked programs, for hosts that cannot pull one.

    This needs no container engine. To use the image with plain kind, load the archive that is printed last:

    \b
    docker load --input ARCHIVE
    kind create cluster --image REFERENCE
    """  # noqa: D301 - as above
    began = time.monotonic()
    image = make_node(lock_for(kubernetes), Progress())
    _print_made(image, began)
    click.echo(image.archive)


@group.command()
@click.argument("source", metavar="BINARY|FOLDER", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--as", "reference", metavar="NAME", required=True, help="The image's name, as in the driver's manifests."
)
@click.option(
    "--at", metavar="PATH", default="", help="Where it is in the image. [default: /usr/bin/BINARY; / for a folder]"
)
@click.option(
    "--entrypoint",
    metavar="COMMAND",
    help="Entry point, as in a shell; '' for none. [default: the binary; none for a folder]",
)
@click.option(
    "--output", metavar="ARCHIVE", type=click.Path(dir_okay=False, path_type=Path), help="Write the image here."
)
@click.option("--testbed", metavar="NAME", help="Load the image into the nodes of this testbed, which must be up.")
def program(
    source: Path, reference: str, at: str, entrypoint: str | None, output: Path | None, testbed: str | None
) -> None:
    """Make an image of a static binary, or of the content of a folder.

    It needs no container engine and no registry. Without --output, the path of the archive in the cache is printed:
    name it in spec.install.images of the driver file.
    """
    began, progress = time.monotonic(), Progress()
    words = None if entrypoint is None else _words(entrypoint)
    image = image_of_program(reference, source, progress, at=at, entrypoint=words)
    if output:
        shutil.copyfile(image.archive, output)
    _print_made(image, began)
    click.echo(output or image.archive)
    if testbed:
        load_image(image.archive, testbed, progress)
        click.echo(f"loaded into testbed {testbed}")


@group.command()
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@options.name
def load(archive: Path, name: str) -> None:
    """Load the images of an archive into all nodes of a testbed that is up.

    The archive is one of `docker save`, or an OCI archive.
    """
    for each in load_image(archive, name, Progress()) or ("an image without a name",):
        click.echo(f"{each}  loaded into testbed {name}")


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as wrong:
        raise UsageError(f"--entrypoint {command!r}: {wrong}", hint="quote it as in a shell") from wrong


def _print_made(image: Image, began: float) -> None:
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

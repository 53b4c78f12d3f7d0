"""The catalogue as a page (docs/requirements.md). A test compares the page with the suites."""

from __future__ import annotations

from pathlib import Path

from testbed.conformance.catalogue import Catalogue, Entry
from testbed.conformance.requirement import Requirement

_HEAD = """# Requirements

What a DRA driver, or a cluster with it, has to do. Made from the suites by `python -m testbed.reporting --write`.

Where `about` is `cluster`, it is Kubernetes that the sentence speaks of; a failure there is never the driver's.
What each is proven with, a driver or a cluster that it fails on, is in [mutants.md](mutants.md).
`since` is the first version of Kubernetes that asks for it. `needs` is what has to be there, or it cannot be judged: devices at once,
nodes, what the driver file declares (`features`), feature gates, what the test may take for granted of the devices (`given`;
[optional.md](optional.md) has the words), and what it does to the cluster (`abilities`; `dra-testbed run --plan` says which it has).
What has no test yet is written down and no more: no run judges by it.

| id | level | tier | about | since | requirement | needs | source | fails on | test |
|---|---|---|---|---|---|---|---|---|---|
"""


def markdown(catalogue: Catalogue, root: Path) -> str:
    """The page; paths are seen from `root`."""
    return _HEAD + "".join(_row(entry, root.resolve()) for entry in catalogue.every)


def _row(entry: Entry, root: Path) -> str:
    each = entry.requirement
    cells = (
        each.id,
        each.level,
        each.tier,
        each.about,
        each.kubernetes,
        each.sentence,
        _needs(each),
        each.source,
        ", ".join(each.mutants) or f"unproven: {each.unproven}",
        f"`{entry.path.relative_to(root)}`" if entry.function else "no test yet",
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _needs(each: Requirement) -> str:
    numbers = (f"{count} {what}" for count, what in ((each.devices, "devices"), (each.nodes, "nodes")) if count > 1)
    words = {"features": each.features, "gates": each.gates, "given": each.given, "abilities": each.needs}
    return "; ".join([*numbers, *(f"{name} {', '.join(found)}" for name, found in words.items() if found)])

"""docs/requirements.md: the catalogue as a page. For `__main__`."""

from __future__ import annotations

from pathlib import Path

from testbed.conformance.catalogue import Catalogue, Entry
from testbed.conformance.requirement import Requirement

_HEAD = """# Requirements

What a DRA driver must do, and a cluster for it. Generated from the suites by `python -m testbed.reporting --write`.

* `about`: what a requirement judges. A failure of a requirement about the `cluster` is never the driver's.
* `since`: the first Kubernetes version to which the requirement applies.
* `needs`: without these, the requirement is not judged. They are the number of devices and nodes, features that the driver file
  declares (`features`), feature gates (`gates`), properties of the devices (`given`, explained in [optional.md](optional.md)),
  numbers of devices in a request (`counts`, if the driver accepts only some), and capabilities of the cluster
  (`abilities`; `dra-testbed run --plan` shows which it has).
* `fails on`: the mutants on which the test must fail, described in [mutants.md](mutants.md).

Requirements without a test are not judged by any run.

| id | level | tier | about | since | requirement | needs | source | fails on | test |
|---|---|---|---|---|---|---|---|---|---|
"""


def markdown(catalogue: Catalogue, root: Path) -> str:
    """Return the page. Paths are relative to `root`."""
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
    words = {
        "features": each.features,
        "gates": each.gates,
        "given": each.given,
        "counts": [*map(str, each.counts)],
        "abilities": each.needs,
    }
    return "; ".join([*numbers, *(f"{name} {', '.join(found)}" for name, found in words.items() if found)])

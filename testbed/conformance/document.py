"""The catalogue as a page (docs/requirements.md). A test compares the page with the suites."""

from __future__ import annotations

from pathlib import Path

from testbed.conformance.catalogue import Catalogue, Entry

_HEAD = """# Requirements

What a DRA driver, or a cluster with it, has to do. Made from the suites by `python -m testbed.conformance --write`.

Where `about` is `cluster`, it is Kubernetes that the sentence speaks of; a failure there is never the driver's.
What has no test yet is written down and no more: no run judges by it.

| id | level | tier | about | requirement | source | test |
|---|---|---|---|---|---|---|
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
        each.sentence,
        each.source,
        f"`{entry.path.relative_to(root)}`" if entry.function else "no test yet",
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

"""`python -m testbed.reporting --write`: write what is generated from suites and models in docs/. `--check` fails if they are stale."""

from __future__ import annotations

import sys
from pathlib import Path

from testbed import folders
from testbed.conformance import catalogue
from testbed.reporting import driver_file_page, requirements_page, upstream_page


def pages(docs: Path) -> dict[str, str]:
    """Return every generated page by its file name. A part of driver-file.md is written by hand."""
    suites = folders.data("suites")
    known = catalogue.read([suites])
    return {
        "requirements.md": requirements_page.markdown(known, suites.parent),
        "driver-file.md": driver_file_page.page((docs / "driver-file.md").read_text()),
        "upstream.md": upstream_page.page(upstream_page.read(suites / upstream_page.FILE), known),
    }


def stale(docs: Path) -> list[str]:
    """Return the names of pages that do not match the suites."""
    return [name for name, text in pages(docs).items() if not _matches(docs / name, text)]


def write(docs: Path) -> None:
    """Write all pages."""
    for name, text in pages(docs).items():
        (docs / name).write_text(text)


def _matches(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


if __name__ == "__main__":
    docs = folders.data("suites").parent / "docs"
    if sys.argv[1:] == ["--write"]:
        write(docs)
    elif sys.argv[1:] == ["--check"]:
        if old := stale(docs):
            raise SystemExit(f"stale: docs/{', docs/'.join(old)}; run: python -m testbed.reporting --write")
    else:
        raise SystemExit("usage: python -m testbed.reporting --write|--check")

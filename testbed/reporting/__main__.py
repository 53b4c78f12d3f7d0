"""`python -m testbed.reporting --write`: the catalogue for people to read, as pages in docs/. `--check` says whether they are fresh."""

from __future__ import annotations

import sys
from pathlib import Path

from testbed import folders
from testbed.conformance import catalogue
from testbed.reporting import requirements_page, upstream_page


def pages() -> dict[str, str]:
    """Every page that is made of the suites, by its file name."""
    suites = folders.data("suites")
    known = catalogue.read([suites])
    return {
        "requirements.md": requirements_page.markdown(known, suites.parent),
        "upstream.md": upstream_page.page(upstream_page.read(suites / upstream_page.FILE), known),
    }


def stale(docs: Path) -> list[str]:
    """The pages that do not say what the suites say."""
    return [name for name, text in pages().items() if not _is(docs / name, text)]


def write(docs: Path) -> None:
    """Write them all."""
    for name, text in pages().items():
        (docs / name).write_text(text)


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


if __name__ == "__main__":
    docs = folders.data("suites").parent / "docs"
    if sys.argv[1:] == ["--write"]:
        write(docs)
    elif sys.argv[1:] == ["--check"]:
        if old := stale(docs):
            raise SystemExit(f"not fresh: docs/{', docs/'.join(old)}; python -m testbed.reporting --write")
    else:
        raise SystemExit("python -m testbed.reporting --write|--check")

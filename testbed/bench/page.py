"""Render docs/performance.md for `bench driver --write`: the machine, the versions and the table. The other text is in page.md."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from testbed.bench.comparison import Comparison
from testbed.rendering import render_file


def render_page(comparison: Comparison, claims: int, rounds: int) -> str:
    """Return the page."""
    facts: dict[str, object] = {
        "machine": describe_machine(),
        "versions": ", ".join(f"{title} {version}" for title, version in comparison.versions.items()),
        "kubernetes": comparison.kubernetes,
        "python": platform.python_version(),
        "claims": claims,
        "rounds": rounds,
        "table": markdown_table(comparison.header(), comparison.rows()),
        "reasons": [" ".join(line.split()) for line in comparison.failure_lines()],
    }
    return render_file(Path(__file__).with_name("page.md"), facts)


def describe_machine() -> str:
    """Return a description of this machine without its host name."""
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    total = re.search(r"^MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    memory = f"{int(total[1]) / 2**20:.0f} GiB" if total else "an unknown amount"
    processor = model[1] if model else platform.machine()
    return f"{len(os.sched_getaffinity(0))} cores of {processor}, {memory} of memory, Linux {platform.release()}"


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown, with numbers aligned to the right."""
    ruler = ["---", *("---:" for _ in header[1:-1]), "---"]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, ruler, *rows))

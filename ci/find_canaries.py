"""Fail if a file in a folder contains one of the given texts: `python -m ci.find_canaries FOLDER CANARY...`.

CI puts random canaries where users have credentials, runs the suites, and searches everything that the run wrote.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


def find(folder: Path, canaries: Sequence[str]) -> Iterator[Path]:
    """Yield the files that contain a canary, as it is or in base64."""
    wanted = [form for each in canaries for form in (each.encode(), base64.b64encode(each.encode()))]
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if any(each in content for each in wanted):
                yield path


def main(arguments: Sequence[str]) -> int:
    """Print the files with a canary. Return 1 if there are any, 2 if nothing was searched."""
    folder, canaries = Path(arguments[0]) if arguments else Path(), arguments[1:]
    if not canaries or not any(folder.rglob("*")):
        print(__doc__, f"nothing to search: {folder}", sep="\n", file=sys.stderr)
        return 2
    found = list(find(folder, canaries))
    for path in found:
        print(f"{path} contains a canary")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

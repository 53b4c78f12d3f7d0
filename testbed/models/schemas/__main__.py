"""Write the JSON Schemas: `python -m testbed.models.schemas`. With `--check` it lists stale ones and exits with 1."""

from __future__ import annotations

import sys

from testbed.models.schemas import generated, stale


def main(arguments: list[str]) -> int:
    """Write or check the schemas, and return the exit code."""
    if arguments == ["--check"]:
        old = stale()
        for path in old:
            sys.stderr.write(f"{path} is stale; run: python -m testbed.models.schemas\n")
        return 1 if old else 0
    if arguments:
        sys.stderr.write("usage: python -m testbed.models.schemas [--check]\n")
        return 2
    for path, text in generated():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

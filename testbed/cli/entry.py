"""Where the console script begins: imports nothing before it can answer Ctrl-C, so that none ends in a traceback."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """The entry point of the console script."""
    try:
        from testbed.cli import main as command  # noqa: PLC0415 - the imports are what Ctrl-C would end in the middle of

        command.main()
    except KeyboardInterrupt:
        sys.exit(130)

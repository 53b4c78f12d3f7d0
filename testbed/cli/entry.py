"""The entry point of the console script. It imports nothing before it handles Ctrl-C, which would end in a traceback."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command."""
    try:
        from testbed.cli import main as command  # noqa: PLC0415 - Ctrl-C may come during the imports

        command.main()
    except KeyboardInterrupt:
        sys.exit(130)

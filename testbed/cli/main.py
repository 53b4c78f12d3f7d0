"""The command `dra-testbed`. It imports only the subcommand that is called, so that `--help` is fast.

The subcommands are in the modules beside this one. `exit_codes` turns every error into a message and an exit code.
"""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn, cast

import click

from testbed import __version__
from testbed.cli import exit_codes
from testbed.errors import UsageError, did_you_mean

# name -> module, attribute, and the line for --help
COMMANDS = {
    "run": ("testbed.cli.run", "run", "Judge a driver, and remove everything again."),
    "up": ("testbed.cli.testbeds", "up", "Make a testbed that stays."),
    "down": ("testbed.cli.testbeds", "down", "Remove a testbed."),
    "status": ("testbed.cli.testbeds", "status", "Show the state of one testbed or all."),
    "logs": ("testbed.cli.testbeds", "logs", "Show or copy the logs of a testbed's components."),
    "driver": ("testbed.cli.driver", "group", "Write a driver file, and check it before anything is judged."),
    "hardware": ("testbed.cli.hardware", "group", "Show the fake hardware, and change it while pods run."),
    "list": ("testbed.cli.catalogue", "list_", "List the requirements."),
    "explain": ("testbed.cli.catalogue", "explain", "Show one requirement with its manifest and test."),
    "binaries": (
        "testbed.cli.binaries",
        "group",
        "List, fetch and pin the upstream programs.",
    ),
    "images": ("testbed.cli.images", "group", "List and make the container images."),
    "bench": ("testbed.cli.bench", "group", "Measure speed and size."),
    "doctor": ("testbed.cli.host", "doctor", "Show what this host lacks, and how to fix it."),
    "sweep": ("testbed.cli.host", "sweep", "Remove what killed runs left behind."),
}


class LazyGroup(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """Import and return a command, None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        return cast("click.Command", getattr(importlib.import_module(module), attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first argument. UsageError with similar names if there is none."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UsageError(
                f"there is no command {args[0]}", hint=did_you_mean(args[0], COMMANDS) or "dra-testbed --help"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Write the lines of the table, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 conformant or done, 1 the driver failed, 2 wrong usage, 3 harness or host failed, 4 incomplete, "
    "129 terminal closed, 130 interrupted, 143 stopped. "
    "A run that is interrupted during its tests exits with the code of its report, usually 4.",
)
@click.version_option(__version__, prog_name="dra-testbed")
@click.option("--debug", is_flag=True, envvar="DRA_TESTBED_DEBUG", help="Print tracebacks of errors.")
def cli(debug: bool) -> None:
    """Start a real Kubernetes with fake GPUs in seconds, and judge any DRA driver."""


def main() -> NoReturn:
    """Run the command and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command with these arguments and return the exit code."""
    return exit_codes.exit_code_of(lambda: _invoke(arguments or ["--help"]), debug="--debug" in arguments[:1])


def _invoke(arguments: list[str]) -> None:
    # Not click's own main(), which has other messages and exit codes.
    with cli.make_context("dra-testbed", arguments) as context:
        cli.invoke(context)


if __name__ == "__main__":
    main()

"""The command `dra-testbed`: knows its subcommands by name and imports only the one that is called, so that `--help` is quick.

Each subcommand is a module beside this one. `endings` turns whatever happens in it into a message and an exit code.
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
    "run": ("testbed.cli.run", "run", "Judge a driver; then all is removed again."),
    "up": ("testbed.cli.testbeds", "up", "Make a testbed that stays."),
    "down": ("testbed.cli.testbeds", "down", "Remove a testbed."),
    "status": ("testbed.cli.testbeds", "status", "How a testbed is, or all of them."),
    "logs": ("testbed.cli.testbeds", "logs", "The logs of a testbed's components."),
    "hardware": ("testbed.cli.hardware", "group", "The fake hardware: what there is, and where it stands."),
    "list": ("testbed.cli.catalogue", "list_", "The requirements that there are."),
    "explain": ("testbed.cli.catalogue", "explain", "One requirement, with its manifest and test."),
    "binaries": (
        "testbed.cli.binaries",
        "group",
        "Upstream's programs: list, fetch, path.",
    ),
    "images": ("testbed.cli.images", "group", "The container images, and how to make them."),
    "bench": ("testbed.cli.bench", "group", "Measure how fast and how small."),
    "doctor": ("testbed.cli.host", "doctor", "What this host lacks, with the cure."),
    "sweep": ("testbed.cli.host", "sweep", "Remove what killed runs left behind."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands in the order of the table: the main job first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        return cast("click.Command", getattr(importlib.import_module(module), attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word means; near matches where it means none."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UsageError(
                f"there is no command {args[0]}", hint=did_you_mean(args[0], COMMANDS) or "dra-testbed --help"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """The table's lines; no command is imported for them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 conformant or done, 1 the driver failed, 2 wrong usage, 3 harness or host failed, 4 incomplete, "
    "129 terminal closed, 130 interrupted, 143 stopped; a run that is interrupted in its tests ends as its report says, mostly with 4.",
)
@click.version_option(__version__, prog_name="dra-testbed")
@click.option("--debug", is_flag=True, envvar="DRA_TESTBED_DEBUG", help="Print tracebacks of errors.")
def cli(debug: bool) -> None:
    """A real Kubernetes in seconds, with fake GPUs, and a verdict on any DRA driver."""


def main() -> NoReturn:
    """The entry point of the console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Do what the arguments say; the exit code."""
    return exit_codes.exit_code_of(lambda: _invoke(arguments or ["--help"]), debug="--debug" in arguments[:1])


def _invoke(arguments: list[str]) -> None:
    # Not click's own main(): its ways to end are not ours.
    with cli.make_context("dra-testbed", arguments) as context:
        cli.invoke(context)


if __name__ == "__main__":
    main()

"""doctor, sweep: what this host lacks, and what killed runs left on it. Parses, calls bringup, prints."""

from __future__ import annotations

from pathlib import Path

import click

from testbed.bringup import sweeping
from testbed.bringup.doctor import examine
from testbed.cli import options
from testbed.errors import UsageError
from testbed.progress import Progress

_PATH = click.Path(path_type=Path)


@click.command()
@click.option("--provider", default="local", show_default=True, help="The provider to check the host for.")
@options.output_format
def doctor(provider: str, output: str) -> None:
    """Show what this host lacks for a testbed, and how to fix it. Changes nothing; exit code 3 if something is missing."""
    findings = examine(provider)
    if output == "json":
        options.print_json([{"what": f.what, "cure": f.cure, "fatal": f.fatal} for f in findings])
    else:
        for finding in findings:
            click.echo(f"{'✗' if finding.fatal else '•'} {finding.what}\n    {finding.cure}")
        click.echo(
            "this host cannot run a testbed yet" if any(f.fatal for f in findings) else "✓ this host can run a testbed"
        )
    if any(finding.fatal for finding in findings):
        raise SystemExit(3)


@click.command()
@click.option("--all", "everything", is_flag=True, help="Remove every testbed of this user, even if it is in use.")
@click.option("--kubeconfig", type=_PATH, metavar="FILE", help="Also remove what killed runs left in this cluster.")
@click.option("--context", metavar="NAME", help="The kubeconfig's context. [default: the current]")
def sweep(everything: bool, kubeconfig: Path | None, context: str | None) -> None:
    """Remove what killed runs left behind: processes, namespaces, links, cgroups, files. Change nothing else.

    With --kubeconfig, --all applies only to that cluster, and also removes what testbeds of other hosts made there.
    """
    if context and not kubeconfig:
        raise UsageError("--context needs --kubeconfig", hint="add --kubeconfig FILE")
    removed = sweeping.sweep(Progress(), everything=everything and not kubeconfig)
    if kubeconfig:
        removed += sweeping.sweep_cluster(kubeconfig, context, Progress(), everything=everything)
    for each in removed:
        click.echo(f"removed {each}")
    if not removed:
        click.echo("nothing to remove")

"""Render docs/peers.md: the drivers of other projects, their verdicts, and each difference with its reason. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ci.peers.differences import NOT_JUDGED, Difference, Judged, counted
from testbed.models.report import Environment, RequirementReport

_HEAD = """# Peers

Drivers of other projects, judged by our suites as their vendors would do it: `dra-testbed run --driver FILE`, with a driver file, manifests
and an image of the unchanged program, on a testbed with two nodes. The driver files are in `manifests/drivers`.

`tox -e peers` builds the programs from locked sources (`ci/versions/peers.yaml`) and runs the profile `core`;
`tox -e peers -- --profile full` runs all requirements. It exits with 1 if a failed requirement is not explained here, or if an
explained one passes. `tox -e peers -- --write` generates this page from the reports so far. It combines the reports of several runs if they
are about the same program, manifests, requirements and cluster.
"""
_WHOSE = {"theirs": "theirs", "design": "theirs, on purpose", "ours": "ours"}


def render(peers: Mapping[str, tuple[str, Judged]]) -> str:
    """Return the page from name, version and verdicts of each peer."""
    return "\n".join([_HEAD, *(_section(name, version, judged) for name, (version, judged) in peers.items())])


def _section(name: str, version: str, judged: Judged) -> str:
    rows = "".join(f"| {verdict} | {count} |\n" for verdict, count in counted(judged.verdicts.values()))
    parts = [
        f"## {name} {version}\n\n{judged.known.about.strip()}\n\nSource: {judged.known.source}\n",
        f"Judged on {_place(judged.where)}.\n" if judged.where else "",
        f"| verdict | requirements |\n|---|---|\n{rows}",
        _not_judged(judged),
        "### Differences\n\n" + (_differences(judged) or "None.\n"),
    ]
    return "\n".join(each for each in parts if each)


def _place(where: Environment) -> str:
    gates = [f"{name}={str(on).lower()}" for name, on in sorted(where.feature_gates.items())]
    return ", ".join([f"Kubernetes {where.kubernetes}", f"provider {where.provider}", *gates])


def _not_judged(judged: Judged) -> str:
    """Return how many requirements were not judged, by reason."""
    reasons = Counter(_reason(each) for each in judged.verdicts.values() if each.verdict in NOT_JUDGED)
    lines = [
        f"* {count}: {reason}\n" for reason, count in sorted(reasons.items(), key=lambda each: (-each[1], each[0]))
    ]
    return "Not judged:\n\n" + "".join(lines) if lines else ""


def _reason(each: RequirementReport) -> str:
    return each.message.partition("\n")[0] if each.verdict else "the run ended before there was a verdict"


def _differences(judged: Judged) -> str:
    explained = [_explained(each, judged.not_failed(each)) for each in judged.known.differences]
    return "\n".join([*explained, *(_unexplained(each) for each in judged.unexplained if each.verdict)])


def _explained(each: Difference, not_failed: Sequence[str]) -> str:
    but = f" Did not fail in these runs: {', '.join(not_failed)}." if not_failed else ""
    what = f"**{', '.join(each.requirements)}** ({_WHOSE[each.whose]}). {each.what.strip()}{but}"
    return f"{what}\n\nSource: {each.source}\n"


def _unexplained(each: RequirementReport) -> str:
    first = each.message.partition("\n")[0]
    return f"**{each.id}** ({each.verdict}, not explained yet). {each.sentence} Message: {first}\n"

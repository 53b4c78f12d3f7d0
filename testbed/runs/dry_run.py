"""`dra-testbed run --plan`: which requirements a run would judge and which not, with the reason. Changes nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from testbed import folders
from testbed.bringup import planning
from testbed.conformance import catalogue, facts, selection
from testbed.conformance.catalogue import Entry
from testbed.conformance.selection import Choice, Facts
from testbed.models.driver_file import load_driver_file
from testbed.models.run_request import RunRequest
from testbed.runs import pytest_process
from testbed.runs.execution import target
from testbed.runs.known_failures import check_known_ids


@dataclass(frozen=True)
class Decision:
    """What would happen to one requirement: `plan` is `run`, or the verdict that it has without being judged."""

    id: str
    plan: str
    reason: str
    makes: str


@dataclass(frozen=True)
class RunPlan:
    """A run that has not begun. `testbed` is what would be made for it, None where it is up."""

    testbed: planning.Plan | None
    facts: Facts
    decisions: tuple[Decision, ...]


def plan_run(request: RunRequest) -> RunPlan:
    """Return what `run` would do. What it would refuse is refused here too."""
    matching = pytest_process.matching_tests(request.keyword) if request.keyword else None
    found, testbed = _facts(request)
    entries = catalogue.read([folders.data("suites")]).entries
    by_id = {entry.requirement.id: entry for entry in entries}
    every = [entry.requirement for entry in entries]
    choices = selection.plan(every, found, request.tiers, request.profile, request.failed)
    decided = (_decision(choice, by_id[choice.requirement.id], matching) for choice in choices)
    return RunPlan(testbed, found, tuple(decided))


def _facts(request: RunRequest) -> tuple[Facts, planning.Plan | None]:
    testbed, config = target(request)
    check_known_ids(request.driver_file(config))
    driver_file = load_driver_file(request.driver_file(config))
    if testbed is not None:
        return facts.gather(
            testbed.kube, driver_file, testbed.cluster.capabilities, testbed.owner, testbed.kept_nodes
        ), None
    plan, existing = planning.plan(config)
    if existing is None:
        of_config = config.kubernetes, config.nodes, driver_file.features, config.feature_gates, config.kubelet or ""
        return facts.expected_facts(*of_config, given=driver_file.given, claim=driver_file.devices.claim), plan
    return facts.gather(existing.kube, driver_file, existing.cluster.capabilities), plan


def _decision(planned: Choice, entry: Entry, matching: frozenset[str] | None) -> Decision:
    selected = matching is None or any(entry.test.endswith(f"/{test}") for test in matching)
    choice = selection.apply_selection(planned, selected)
    makes = _objects(entry) if choice.verdict is None else ""
    return Decision(choice.requirement.id, choice.verdict or "run", choice.reason, makes)


def _objects(entry: Entry) -> str:
    """Return what the test makes: a namespace of its own, with the objects of its manifests."""
    manifests = folders.data("manifests") / "suites"
    text = "\n".join((manifests / name).read_text() for name in entry.manifests)
    kinds = dict.fromkeys(re.findall(r"^kind: (\w+)", text, re.MULTILINE))
    return f"namespace dra-{entry.requirement.id.lower()}-…: {', '.join(kinds)}" if kinds else ""

"""The content of a driver file, from the facts of a cluster and samples of containers. Pure; `initialize` calls it, `writer` writes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.kube.client import Object
from testbed.onboarding.discovery.exemptions import exemptions, outside_cdi
from testbed.onboarding.discovery.facts import PublishedDevice, Sample, by_node
from testbed.onboarding.discovery.inference import identities, specials
from testbed.onboarding.discovery.inference.classes import Classes
from testbed.onboarding.discovery.inference.identities import IdentityCandidate
from testbed.onboarding.discovery.inference.pods import PodsFinding
from testbed.onboarding.discovery.inference.probes import additions, find_probe
from testbed.onboarding.discovery.inference.shown import ProbeFinding
from testbed.onboarding.discovery.limits import Limits
from testbed.onboarding.discovery.questions import Questions


@dataclass(frozen=True)
class Observed:
    """What was found out about a driver."""

    driver: str
    install: Mapping[str, Any]
    pods: PodsFinding
    classes: Classes
    nodes: Sequence[Object] = ()
    slices: Sequence[Object] = ()
    samples: Sequence[Sample] = ()
    limits: Limits = Limits()  # noqa: RUF009 - immutable


@dataclass(frozen=True)
class Draft:
    """The keys of `spec` of a driver file, in their order, with the reasons for them by their keys."""

    spec: Mapping[str, Any]
    reasons: Mapping[str, str] = field(default_factory=dict)


def draft(observed: Observed, questions: Questions) -> Draft:
    """Return the content of a driver file. What could not be found out is asked."""
    pods, of, samples = observed.pods, observed.classes, observed.samples
    candidates = identities.identity_candidates(of.selected)
    probe = find_probe(samples, candidates, of.selected)
    # Tests request particular devices by their identity, also if containers show something else.
    identity = (probe and probe.identity) or next(iter(candidates), None)
    exempt = exemptions(samples, probe, observed.limits, questions)
    devices = _devices(of, identity, samples, questions)
    spec: dict[str, Any] = {
        "driver": observed.driver,
        "version": pods.version,
        "needs": list(pods.needs),
        "install": dict(observed.install),
        "pods": {}
        if "process" in observed.install
        else {"namespace": pods.namespace, "selector": pods.selector, "container": pods.container},
        "nodes": _nodes(pods, observed.nodes, of.selected),
        "devices": devices,
        "probe": _probe(probe, samples, questions),
        "exempt": exempt,
        "features": _features(samples),
        "optional": specials.optional_section(of, [*of.selected, *of.others], observed.slices),
    }
    if of.others and "others" not in devices:
        questions.note("devices", "Which attribute tells the devices of other kinds apart (devices.others)?")
    return Draft({key: value for key, value in spec.items() if value}, _reasons(observed, probe))


def _reasons(observed: Observed, probe: ProbeFinding | None) -> dict[str, str]:
    of, outside = observed.classes, outside_cdi(observed.samples)
    per_node = ", ".join(f"{node or 'network'}: {len(mine)}" for node, mine in sorted(by_node(of.selected).items()))
    reasons = {
        "version": f"the tag of image {observed.pods.image}",
        "needs": "the pods mount the socket of NRI",
        "devices.classes": f"{len(of.selected)} of {len(of.selected) + len(of.others)} devices",
        "devices.perNode": per_node,
        "probe": _shown(probe),
        "exempt": f"{', '.join(dict.fromkeys(outside))} comes with a claim, and is in no CDI file." if outside else "",
    }
    return {key: text for key, text in reasons.items() if text}


def _devices(
    classes: Classes, identity: IdentityCandidate | None, samples: Iterable[Sample], questions: Questions
) -> dict[str, Any]:
    found = identities.examples(classes.selected)
    examples = {"attribute": found.attribute, "capacity": found.capacity, "match": found.match}
    per_node = min((len(of) for node, of in by_node(classes.selected).items() if node), default=1)
    section = {
        "classes": list(classes.ordinary),
        "belongTo": "" if any(each.node for each in classes.selected) else "network",
        "perNode": per_node if per_node > 1 else 0,
        "identity": {"attribute": identity.attribute, "scope": identity.scope} if identity else {},
        "claim": _claim(samples, max(len(of) for of in by_node(classes.selected).values()), questions),
        "examples": {key: value for key, value in examples.items() if value},
        "others": specials.others_section(classes) or {},
    }
    return {key: value for key, value in section.items() if value}


def _claim(samples: Iterable[Sample], most: int, questions: Questions) -> dict[str, Any]:
    """Return which claims the driver accepts, if it refused some: those with as many devices as in the pods that ran.

    If it accepts one device and refuses several, that may be a fault, so the user is asked.
    """
    tried = [each for each in samples if each.count]
    accepted = sorted({each.count for each in tried if each.devices and not each.refusal})
    refused = [f"{each.count} devices: {each.refusal}" for each in tried if each.refusal]
    if not accepted or not refused:
        return {}
    if accepted[0] == 1 and not questions.confirm(
        "devices.claim",
        f"Is a claim limited to {accepted[-1]} devices by the driver's documentation? Seen: {'; '.join(refused)}",
    ):
        return {}
    return {"counts": "all" if accepted == [most] else accepted}


def _nodes(pods: PodsFinding, nodes: Collection[Object], devices: Collection[PublishedDevice]) -> dict[str, Any]:
    """Return the labels that the DaemonSet requires; without any, a label that only nodes with devices have."""
    if pods.labels:
        return {"labels": dict(pods.labels)}
    own = {each.node for each in devices if each.node}
    labels = [(each["metadata"]["name"] in own, set((each["metadata"].get("labels") or {}).items())) for each in nodes]
    with_devices = [found for has_devices, found in labels if has_devices]
    without = [found for has_devices, found in labels if not has_devices]
    if not with_devices or not without:
        return {}
    common = set.intersection(*with_devices).difference(*without)
    return {"selector": dict([min(common)])} if common else {}


def _probe(probe: ProbeFinding | None, samples: Collection[Sample], questions: Questions) -> dict[str, Any]:
    """Return the probe. If there is none, ask for it: what a claim adds helps to find one."""
    if probe:
        return {probe.kind: list(probe.command) or probe.pattern or True}
    added = ", ".join(additions(samples)) or "nothing"
    refused = [f"a pod with {each.count} devices did not run: {each.refusal}" for each in samples if each.refusal]
    seen = "; ".join([f"a claim adds to its container: {added}", *refused])
    questions.note("probe", f"How does a container show its devices? {seen}")
    return {"command": ["env"], "lines": "^(?P<name>UNKNOWN)$"}


def _shown(probe: ProbeFinding | None) -> str:
    """Return where the probe was found, without values of variables, which may be secrets."""
    if probe is None:
        return ""
    example = f"CPUs {probe.example}" if probe.kind == "cpuset" else probe.example.partition("=")[0]
    return f"Seen in a container with a claim, and in none without: {example}."


def _features(samples: Collection[Sample]) -> list[str]:
    has_metadata = any("dra-device-attributes" in path for each in samples for path in each.contents.mounts)
    found = {
        "device-status": any(each.has_status for each in samples),
        "health": any(each.has_health for each in samples),
        "metadata": has_metadata,
    }
    return [name for name, seen in found.items() if seen]

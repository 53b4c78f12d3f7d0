"""Feature gates and `--runtime-config` entries: parses what users write and checks it against a Kubernetes version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from testbed.errors import UsageError, did_you_mean

_VALUES = {"true": True, "false": False}
_GROUPS = {"AllAlpha": "alpha", "AllBeta": "beta"}
_OLDEST_KUBELET = 3
_CORE_VERSIONS = ("all", "ga", "beta", "alpha", "legacy", "v1")


class GateInfo(Protocol):
    """One feature gate of a Kubernetes version."""

    @property
    def stage(self) -> str:
        """Return alpha, beta, ga or deprecated."""

    @property
    def default(self) -> bool:
        """Return True if the gate is on by default."""

    @property
    def locked(self) -> bool:
        """Return True if the gate cannot be changed."""

    @property
    def needs(self) -> Sequence[str]:
        """Return the gates that must be on too if this one is on."""


def check_skew(kubernetes: str, kubelet: str) -> None:
    """Raise UsageError if Kubernetes does not support kubelets of this version with this API server."""
    server, node = (int(version.split(".")[1]) for version in (kubernetes, kubelet))
    if not 0 <= server - node <= _OLDEST_KUBELET:
        raise UsageError(
            f"--kubelet {kubelet} is not supported with Kubernetes {kubernetes}",
            hint="a kubelet may be up to three minor versions older than the API server, and not newer",
        )


def parse_gate(text: str) -> tuple[str, bool]:
    """Parse Name=true or Name=false. Raise UsageError for anything else."""
    name, _, value = text.partition("=")
    if not name.strip() or value.strip().lower() not in _VALUES:
        raise UsageError(f"--feature-gate {text!r} is not of the form Name=true or Name=false")
    return name.strip(), _VALUES[value.strip().lower()]


def parse_runtime_config(text: str) -> tuple[str, str]:
    """Parse group/version=true or group/version=false. Without a value it is true, as for kube-apiserver."""
    name, _, value = text.partition("=")
    if not name.strip():
        raise UsageError(f"--runtime-config {text!r} is not of the form group/version=true or group/version=false")
    return name.strip(), value.strip() or "true"


def check_gates(requested: Mapping[str, bool], known: Mapping[str, GateInfo]) -> None:
    """Raise UsageError for gates that do not exist, are locked, or would be on while a gate that they need is off."""
    problems = [problem for name, value in requested.items() if (problem := _gate_problem(name, value, known))]
    problems += _unmet_needs(requested, known)
    if problems:
        raise UsageError("\n".join(problems))


def check_runtime_config(requested: Mapping[str, str], resource_versions: Mapping[str, bool]) -> None:
    """Raise UsageError for what no API server would start with: invalid values, names that are no API, unknown DRA API versions."""
    problems = []
    for key, value in sorted(requested.items()):
        group, _, version = key.partition("/")
        if value not in ("true", "false"):
            problems.append(f"runtime config {key} is {value!r}, but must be true or false")
        elif not version or (group == "api" and version not in _CORE_VERSIONS):
            problems.append(
                f"runtime config {key} is not an API: write GROUP/VERSION, or api/{'|api/'.join(_CORE_VERSIONS)}"
            )
        elif group == "resource.k8s.io" and version.partition("/")[0] not in resource_versions:
            hint = did_you_mean(version, resource_versions)
            problems.append(f"this Kubernetes version has no resource.k8s.io/{version}; {hint}")
    if problems:
        raise UsageError("\n".join(problems))


def _gate_problem(name: str, value: bool, known: Mapping[str, GateInfo]) -> str:
    if name not in known:
        hint = did_you_mean(name, known)
        return f"this Kubernetes version has no feature gate {name}" + (f"; {hint}" if hint else "")
    gate = known[name]
    if gate.locked and value != gate.default:
        return f"feature gate {name} is locked to {str(gate.default).lower()} in this Kubernetes version"
    return ""


def _unmet_needs(requested: Mapping[str, bool], known: Mapping[str, GateInfo]) -> list[str]:
    """Return a problem for each gate that is on while one that it needs is off, unless the defaults are like that already."""
    return [
        f"feature gate {name} needs {need}, which is off; add --feature-gate {need}=true"
        for name, gate in known.items()
        for need in gate.needs
        if need in known
        and is_on(name, requested, known) > is_on(need, requested, known)
        and not known[name].default > known[need].default
    ]


def is_on(name: str, requested: Mapping[str, bool], known: Mapping[str, GateInfo]) -> bool:
    """Return a gate's value with the requested gates: by its name, otherwise by AllAlpha or AllBeta, otherwise the default."""
    if name in requested:
        return requested[name]
    group = next((group for group, stage in _GROUPS.items() if stage == known[name].stage), "")
    return known[name].default if known[name].locked else requested.get(group, known[name].default)

"""Feature gates and `--runtime-config` entries: parsing what users write, and checking gates against what a Kubernetes version knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from testbed.errors import UsageError, did_you_mean

_VALUES = {"true": True, "false": False}
_GROUPS = {"AllAlpha": "alpha", "AllBeta": "beta"}
_OLDEST_KUBELET = 3
_CORE_VERSIONS = ("all", "ga", "beta", "alpha", "legacy", "v1")


class GateInfo(Protocol):
    """What a Kubernetes version says about one of its gates."""

    @property
    def stage(self) -> str:
        """alpha, beta, ga or deprecated."""

    @property
    def default(self) -> bool:
        """Whether it is on when nobody says anything."""

    @property
    def locked(self) -> bool:
        """Whether it cannot be changed."""

    @property
    def needs(self) -> Sequence[str]:
        """The gates that must be on where it is on."""


def check_skew(kubernetes: str, kubelet: str) -> None:
    """Kubernetes supports kubelets of the API server's minor version and of the three before it."""
    server, node = (int(version.split(".")[1]) for version in (kubernetes, kubelet))
    if not 0 <= server - node <= _OLDEST_KUBELET:
        raise UsageError(
            f"--kubelet {kubelet} does not go with Kubernetes {kubernetes}",
            hint="a kubelet may be up to three minor versions older than the API server, and never newer",
        )


def parse_gate(text: str) -> tuple[str, bool]:
    """Name=true or Name=false."""
    name, _, value = text.partition("=")
    if not name.strip() or value.strip().lower() not in _VALUES:
        raise UsageError(f"--feature-gate {text!r} is not of the form Name=true or Name=false")
    return name.strip(), _VALUES[value.strip().lower()]


def parse_runtime_config(text: str) -> tuple[str, str]:
    """group/version=true or =false; without a value it means true, as for kube-apiserver."""
    name, _, value = text.partition("=")
    if not name.strip():
        raise UsageError(f"--runtime-config {text!r} is not of the form group/version=true or group/version=false")
    return name.strip(), value.strip() or "true"


def check_gates(requested: Mapping[str, bool], known: Mapping[str, GateInfo]) -> None:
    """Refuse gates that do not exist, cannot be changed, or would be on without what they need; all problems at once."""
    problems = [problem for name, value in requested.items() if (problem := _gate_problem(name, value, known))]
    problems += _unmet_needs(requested, known)
    if problems:
        raise UsageError("\n".join(problems))


def check_runtime_config(requested: Mapping[str, str], resource_versions: Mapping[str, bool]) -> None:
    """Refuse what no API server would start with: odd values, words that are no API, versions of resource.k8s.io that there are not."""
    troubles = []
    for key, value in sorted(requested.items()):
        group, _, version = key.partition("/")
        if value not in ("true", "false"):
            troubles.append(f"runtime config {key} is {value!r}, but must be true or false")
        elif not version or (group == "api" and version not in _CORE_VERSIONS):
            troubles.append(
                f"runtime config {key} is no API; write GROUP/VERSION, or api/{'|api/'.join(_CORE_VERSIONS)}"
            )
        elif group == "resource.k8s.io" and version.partition("/")[0] not in resource_versions:
            hint = did_you_mean(version, resource_versions)
            troubles.append(f"this Kubernetes has no resource.k8s.io/{version}; {hint}")
    if troubles:
        raise UsageError("\n".join(troubles))


def _gate_problem(name: str, value: bool, known: Mapping[str, GateInfo]) -> str:
    if name not in known:
        hint = did_you_mean(name, known)
        return f"there is no feature gate {name} in this Kubernetes" + (f"; {hint}" if hint else "")
    gate = known[name]
    if gate.locked and value != gate.default:
        return f"feature gate {name} is locked to {str(gate.default).lower()} in this Kubernetes"
    return ""


def _unmet_needs(requested: Mapping[str, bool], known: Mapping[str, GateInfo]) -> list[str]:
    """The gates that the request leaves on while something that they need is off. What is so by default is not the user's doing."""
    return [
        f"feature gate {name} needs {need}, which is off; add --feature-gate {need}=true"
        for name, gate in known.items()
        for need in gate.needs
        if need in known
        and is_on(name, requested, known) > is_on(need, requested, known)
        and not known[name].default > known[need].default
    ]


def is_on(name: str, requested: Mapping[str, bool], known: Mapping[str, GateInfo]) -> bool:
    """Its value once the request holds: said by name, else by its group, else the default."""
    if name in requested:
        return requested[name]
    group = next((group for group, stage in _GROUPS.items() if stage == known[name].stage), "")
    return known[name].default if known[name].locked else requested.get(group, known[name].default)

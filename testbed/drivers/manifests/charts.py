"""Renders a Helm chart, and installs its output like manifests. Used by `install`.

The release has the name of the driver file and the namespace of the driver's pods. Hooks that run when a release is installed are
applied before or after the rest, by their weight; nothing waits for them. Other hooks and tests are left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from testbed.binaries import lock_for, minors
from testbed.drivers.manifests import tools
from testbed.kube.client import Object
from testbed.models.driver.install import Chart
from testbed.models.driver_file import DriverFile

_HOOK, _WEIGHT = "helm.sh/hook", "helm.sh/hook-weight"
_BEFORE, _AFTER = {"crd-install", "pre-install"}, {"post-install"}
# Charts ask for these, which helm does not assume without a cluster.
_APIS = (
    "resource.k8s.io/v1/DeviceClass",
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
)
_CLUSTER_WIDE = frozenset({
    "APIService", "ClusterRole", "ClusterRoleBinding", "CSIDriver", "CustomResourceDefinition", "DeviceClass", "DeviceTaintRule",
    "FlowSchema", "IngressClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
    "Namespace", "Node", "PersistentVolume", "PriorityClass", "PriorityLevelConfiguration", "ResourceSlice", "RuntimeClass",
    "StorageClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
})  # fmt: skip


def template(driver_file: DriverFile, chart: Chart, kubernetes: str) -> str:
    """Return what `helm template` prints. `kubernetes` is the version of the cluster, by default the newest one."""
    arguments = [
        *(
            "template",
            driver_file.name,
            chart.path,
            "--namespace",
            driver_file.pods.namespace,
            "--include-crds",
            "--skip-tests",
        ),
        *(word for each in _APIS for word in ("--api-versions", each)),
        *("--kube-version", kubernetes or lock_for(minors()[0]).kubernetes),  # helm itself assumes an old one
        *(("--values", chart.values) if chart.values else ()),
    ]
    return tools.render(f"chart {chart.path}", tools.find(tools.HELM), *arguments)


def as_installed(objects: Iterable[Object], namespace: str) -> list[Object]:
    """Return the objects that installing the release creates, in the release's namespace unless they name another one."""
    kept = [each for each in objects if not is_left_out(each)]
    return [_located(each, namespace) for each in sorted(kept, key=_position)]


def is_left_out(found: Object) -> bool:
    """Return True for a hook that does not run when a release is installed."""
    hooks = _hooks(found)
    return bool(hooks) and not hooks & (_BEFORE | _AFTER)


def _position(found: Object) -> tuple[int, int]:
    hooks = _hooks(found)
    group = -1 if hooks & _BEFORE else 1 if hooks & _AFTER else 0
    return group, _weight(found) if group else 0


def _weight(found: Object) -> int:
    try:
        return int(_annotations(found).get(_WEIGHT, "0"))
    except ValueError:
        return 0


def _hooks(found: Object) -> set[str]:
    return {each.strip() for each in _annotations(found).get(_HOOK, "").split(",") if each.strip()}


def _annotations(found: Object) -> dict[str, str]:
    return found["metadata"].get("annotations") or {}


def _located(found: Object, namespace: str) -> Object:
    if found["kind"] in _CLUSTER_WIDE or found["metadata"].get("namespace"):
        return found
    return {**found, "metadata": {**found["metadata"], "namespace": namespace}}

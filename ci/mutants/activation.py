"""Turn a testbed into a mutant and back, by the driver's environment or by an admission policy. Used by ci.mutants and tests/e2e."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace

import yaml

from ci.mutants import known
from testbed import bringup
from testbed.bringup import Testbed
from testbed.drivers import install, releases_of, wait_ready
from testbed.drivers.ready import driver_pods, expected_nodes
from testbed.errors import DriverFailed, UsageError, WaitTimeout
from testbed.kube.client import Kube, Object
from testbed.models.config import effective
from testbed.models.driver_file import DriverFile
from testbed.progress import Progress
from testbed.waiting import Budget, NotYet, eventually, set_patience

SLICES = "resource.k8s.io/v1"
RIGHTS = "rbac.authorization.k8s.io/v1"
_QUIET = Budget("driver gone", 60, "it has a grace period, and the last pods of the suites may still be terminating")
_STARTED = Budget("driver runs", 60, "its image is on the node")
_EFFECT = Budget("policy in effect", 30, "the API server reads new policies every second")
_PATIENCE_WITH_MUTANTS = 0.25
_NO_NODE = {"dra-testbed.example/mutant": "changes"}
_CANARY = yaml.safe_load_all(
    """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: mutants-canary}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  matchConditions:
  - {name: canary, expression: object.metadata.name.startsWith('mutants-canary')}
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: "[JSONPatch{op: 'replace', path: '/data/changed', value: 'yes'}]"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: mutants-canary}
spec: {policyName: mutants-canary}
"""
)
_CANARY_OBJECTS: tuple[Object, ...] = tuple(_CANARY)


@dataclass
class MutableTestbed:
    """A testbed whose driver and cluster can be mutants. `fault` is the driver's mutant, '' for none, and None if unknown."""

    testbed: Testbed
    fault: str | None = None

    @property
    def driver_file(self) -> DriverFile:
        """Return the driver file of the testbed."""
        return _driver_file(self.testbed)

    @contextlib.contextmanager
    def as_mutant(self, mutant: str) -> Iterator[None]:
        """Turn the driver or the cluster into this mutant for the block. Any other name, such as `control`, gives a correct testbed."""
        fault = mutant if mutant in known.drivers() else ""
        if self.fault != fault:
            self.fault = None
            reinstall_driver(self.testbed, fault)
            self.fault = fault
        policy = cluster_mutant(self.testbed.kube, mutant) if mutant in known.clusters() else contextlib.nullcontext()
        with policy:
            yield


@contextlib.contextmanager
def mutable_testbed(name: str | None, gates: dict[str, bool] | None = None) -> Iterator[MutableTestbed]:
    """Yield the running testbed with this name, or a new one with these feature gates, which is removed afterwards."""
    if name:
        yield MutableTestbed(bringup.attach(name))
        return
    progress, config = Progress(), effective(None, {"feature_gates": gates or {}})
    made = bringup.bring_up(replace(config, name="mutants"), progress, ephemeral=True)
    try:
        yield MutableTestbed(made, fault="")
    finally:
        bringup.tear_down(made.name, progress)


def reinstall_driver(testbed: Testbed, fault: str) -> None:
    """Install the driver on all nodes with this fault or with none, without state of the previous one. A mutant need not become ready."""
    kube, driver_file = testbed.kube, _driver_file(testbed)
    _patch(kube, driver_file, {"nodeSelector": _NO_NODE})
    eventually(lambda: _no_pods(kube, driver_file), "the end of the driver", _QUIET, longest_pause=0.1)
    _remove_state(testbed)
    changed = _with_fault(driver_file, fault)
    given = {"image": _image(kube, driver_file), "hardware": testbed.config.hardware}
    install(kube, changed, testbed.owner, **given)
    if releases := releases_of(kube, [changed], **given, images_are_loaded=True):
        releases.write(testbed.folder)
    _patch(kube, driver_file, {"nodeSelector": None})
    nodes = expected_nodes(kube, driver_file, testbed.kept_nodes)
    eventually(lambda: _running(kube, driver_file, nodes), "the driver's start", _STARTED, longest_pause=0.1)
    set_patience(_PATIENCE_WITH_MUTANTS if fault else 1)
    try:
        wait_ready(kube, driver_file, nodes)
    except (WaitTimeout, DriverFailed):
        if not fault:
            raise
    finally:
        set_patience(1)


@contextlib.contextmanager
def cluster_mutant(kube: Kube, name: str) -> Iterator[None]:
    """Apply the policies of a mutant of the cluster for the block, and wait until they are in effect."""
    policy = [each for each in yaml.safe_load_all((known.CLUSTERS / f"{name}.yaml").read_text()) if each]
    # Policies come into effect in their order. The effect of the canary can be observed, so it is the last.
    made = [*policy, *_CANARY_OBJECTS]
    try:
        for each in made:
            kube.apply(each)
        eventually(lambda: _check_canary(kube, wanted=True), f"policy {name} to be in effect", _EFFECT)
        yield
    finally:
        for each in made:
            kube.delete(each)
        eventually(lambda: _check_canary(kube, wanted=False), f"policy {name} to be without effect", _EFFECT)


def _check_canary(kube: Kube, *, wanted: bool) -> None:
    name = f"mutants-canary-{secrets.token_hex(3)}"
    metadata = {"name": name, "namespace": "default"}
    asked = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"changed": "no"}}
    if (kube.apply(asked, dry_run=True)["data"]["changed"] == "yes") is not wanted:
        raise NotYet(f"the canary policy is {'not in effect yet' if wanted else 'still in effect'}")


def _patch(kube: Kube, driver_file: DriverFile, pod: Object) -> None:
    kube.patch(_daemonset(kube, driver_file), {"spec": {"template": {"spec": pod}}})


def _with_fault(driver_file: DriverFile, fault: str) -> DriverFile:
    """Return the driver file with this fault in its variables; its templates render what the fault changes."""
    if driver_file.install is None:
        raise UsageError("the driver file has no install section, so the driver cannot be changed into a mutant")
    variables = {**driver_file.install.variables, "faults": [fault] if fault else []}
    made = driver_file.install.model_copy(update={"variables": variables})
    return driver_file.model_copy(update={"spec": driver_file.spec.model_copy(update={"install": made})})


def _image(kube: Kube, driver_file: DriverFile) -> str:
    containers = _daemonset(kube, driver_file)["spec"]["template"]["spec"]["containers"]
    return next(str(each["image"]) for each in containers if each["name"] == driver_file.pods.container)


def _daemonset(kube: Kube, driver_file: DriverFile) -> Object:
    (found,) = kube.list("apps/v1", "DaemonSet", driver_file.pods.namespace, labelSelector=driver_file.pods.selector)
    return found


def _no_pods(kube: Kube, driver_file: DriverFile) -> None:
    left = kube.list("v1", "Pod", driver_file.pods.namespace, labelSelector=driver_file.pods.selector)
    if left:
        raise NotYet("still running: " + ", ".join(each["metadata"]["name"] for each in left))


def _running(kube: Kube, driver_file: DriverFile, nodes: frozenset[str]) -> None:
    running = {
        pod["spec"].get("nodeName")
        for pod in driver_pods(kube, driver_file)
        if any("running" in each["state"] for each in pod.get("status", {}).get("containerStatuses", ()))
    }
    missing = nodes - running
    if missing:
        raise NotYet(f"not running on {', '.join(sorted(missing))}")


def _remove_state(testbed: Testbed) -> None:
    """Remove what a driver left on the nodes and in the API, so that it can't affect the results of the next one."""
    driver = _driver_file(testbed).driver
    for node in testbed.cluster.nodes():
        script = f"rm -rf /var/lib/kubelet/plugins/{driver}/claims* /var/run/cdi/{driver}-*.json"
        node.run("sh", "-c", script)
    for each in testbed.kube.list(SLICES, "ResourceSlice", fieldSelector=f"spec.driver={driver}"):
        testbed.kube.delete(each)
    for each in testbed.kube.list("v1", "Node"):
        _remove_taints(testbed.kube, each, driver)
    for each in testbed.kube.list(RIGHTS, "RoleBinding", _driver_file(testbed).pods.namespace):
        testbed.kube.delete(each)  # a correct driver has none


def _remove_taints(kube: Kube, node: Object, driver: str) -> None:
    """Remove the taints in the domain of a driver, which a mutant set. They would keep pods away from the next one."""
    taints = node["spec"].get("taints") or []
    others = [each for each in taints if not each["key"].startswith(f"{driver}/")]
    if others != taints:
        kube.patch(node, {"spec": {"taints": others or None}})


def _driver_file(testbed: Testbed) -> DriverFile:
    if testbed.driver_file is None:
        raise DriverFailed(f"testbed {testbed.name} has no driver")
    return testbed.driver_file

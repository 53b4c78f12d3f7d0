"""Makes a testbed wrong in one way, and right again: another word in the driver's environment, or a policy of the cluster."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from ci.mutants import known
from testbed.bringup import Testbed
from testbed.drivers import install, wait_ready
from testbed.drivers.ready import driver_pods, expected_nodes
from testbed.errors import DriverFailed, UsageError, WaitTimeout
from testbed.kube.client import Kube, Object
from testbed.models.driver_file import DriverFile
from testbed.waiting import Budget, NotYet, eventually, set_patience

SLICES = "resource.k8s.io/v1"
RIGHTS = "rbac.authorization.k8s.io/v1"
_QUIET = Budget("driver gone", 60, "it gets a grace period, and the suites' last pods may still end")
_STARTED = Budget("driver runs", 60, "its image is on the node")
_EFFECT = Budget("policy in effect", 30, "the API server looks for new policies every second")
_WITH_WRONG_ONES = 0.25
_KEEP_AWAY = {"dra-testbed.example/mutant": "changes"}
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
    jsonPatch: {expression: "[JSONPatch{op: 'replace', path: '/data/sings', value: 'yes'}]"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: mutants-canary}
spec: {policyName: mutants-canary}
"""
)
_CANARY_OBJECTS: tuple[Object, ...] = tuple(_CANARY)


@dataclass
class Victim:
    """A testbed, and the fault that its driver has now; '' when it is right."""

    testbed: Testbed
    fault: str | None = None

    @contextlib.contextmanager
    def made_wrong(self, mutant: str) -> Iterator[None]:
        """The testbed as this mutant, and a right one where it is neither of the driver nor of the cluster."""
        fault = mutant if mutant in known.drivers() else ""
        if self.fault != fault:
            self.fault = None
            change_driver(self.testbed, fault)
            self.fault = fault
        policy = changed_cluster(self.testbed.kube, mutant) if mutant in known.clusters() else contextlib.nullcontext()
        with policy:
            yield


def change_driver(testbed: Testbed, fault: str) -> None:
    """The driver with this fault, or with none, on all nodes, as if it had just been installed. A wrong one need not become ready."""
    kube, driver_file = testbed.kube, _driver_file(testbed)
    _patch(kube, driver_file, {"nodeSelector": _KEEP_AWAY})
    eventually(lambda: _no_pods(kube, driver_file), "the end of the driver", _QUIET, longest_pause=0.1)
    _forget(testbed)
    wrong = _with_fault(driver_file, fault)
    install(kube, wrong, testbed.owner, image=_image(kube, driver_file), hardware=testbed.config.hardware)
    _patch(kube, driver_file, {"nodeSelector": None})
    eventually(lambda: _running(kube, driver_file), "the driver's start", _STARTED, longest_pause=0.1)
    set_patience(_WITH_WRONG_ONES if fault else 1)
    try:
        wait_ready(kube, driver_file)
    except (WaitTimeout, DriverFailed):
        if not fault:
            raise
    finally:
        set_patience(1)


@contextlib.contextmanager
def changed_cluster(kube: Kube, name: str) -> Iterator[None]:
    """The cluster with this policy."""
    policy = [each for each in yaml.safe_load_all((known.CLUSTERS / f"{name}.yaml").read_text()) if each]
    # Policies come into effect in their order, so the canary, which can be seen, comes and goes last.
    made = [*policy, *_CANARY_OBJECTS]
    try:
        for each in made:
            kube.apply(each)
        eventually(lambda: _sings(kube, wanted=True), f"policy {name} to be in effect", _EFFECT)
        yield
    finally:
        for each in made:
            kube.delete(each)
        eventually(lambda: _sings(kube, wanted=False), f"policy {name} to be without effect", _EFFECT)


def _sings(kube: Kube, *, wanted: bool) -> None:
    name = f"mutants-canary-{secrets.token_hex(3)}"
    metadata = {"name": name, "namespace": "default"}
    asked = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"sings": "no"}}
    if (kube.apply(asked, dry_run=True)["data"]["sings"] == "yes") is not wanted:
        raise NotYet(f"the canary is {'silent' if wanted else 'still singing'}")


def _patch(kube: Kube, driver_file: DriverFile, pod: Object) -> None:
    kube.patch(_daemonset(kube, driver_file), {"spec": {"template": {"spec": pod}}})


def _with_fault(driver_file: DriverFile, fault: str) -> DriverFile:
    """Its manifests know what a fault changes: the environment of the driver, or its rights."""
    if driver_file.install is None:
        raise UsageError("a driver that somebody else has installed cannot be made wrong")
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
        raise NotYet("still there: " + ", ".join(each["metadata"]["name"] for each in left))


def _running(kube: Kube, driver_file: DriverFile) -> None:
    running = {
        pod["spec"].get("nodeName")
        for pod in driver_pods(kube, driver_file)
        if any("running" in each["state"] for each in pod.get("status", {}).get("containerStatuses", ()))
    }
    missing = expected_nodes(kube, driver_file) - running
    if missing:
        raise NotYet(f"not on {', '.join(sorted(missing))}")


def _forget(testbed: Testbed) -> None:
    """What a mutant left on the nodes and in the API must not be taken for the next one's doing."""
    driver = _driver_file(testbed).driver
    for node in testbed.cluster.nodes():
        script = f"rm -rf /var/lib/kubelet/plugins/{driver}/claims /var/run/cdi/{driver}-*.json"
        node.run("sh", "-c", script)
    for each in testbed.kube.list(SLICES, "ResourceSlice", fieldSelector=f"spec.driver={driver}"):
        testbed.kube.delete(each)
    for each in testbed.kube.list(RIGHTS, "RoleBinding", _driver_file(testbed).pods.namespace):
        testbed.kube.delete(each)  # the right driver has none


def _driver_file(testbed: Testbed) -> DriverFile:
    if testbed.driver_file is None:
        raise DriverFailed("the testbed has no driver")
    return testbed.driver_file

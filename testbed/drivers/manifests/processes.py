"""Renders the objects that run a program as the driver, one process on each node (`spec.install.process`). Used by `sources`. Pure.

A pod starts the program in the mount namespace of its node, so kubelet and tests restart, update and remove it like any other driver, and
it never outlives the testbed. The program's rights are those of an administrator: no manifest of the vendor says which it needs.
"""

from __future__ import annotations

from typing import Any

import yaml

from testbed.images.basics import WORKLOAD
from testbed.kube.client import Object
from testbed.models.driver.install import Process
from testbed.models.driver_file import DriverFile
from testbed.rendering import render

# In front of a command in one of these pods, to run it where the program runs.
ENTER_NODE = ("nsenter", "-t", "1", "-m", "--")
_RBAC = "rbac.authorization.k8s.io"
_NODE, _POD = "$(NODE_NAME)", "$(POD_UID)"  # the kubelet replaces them
# Write a kubeconfig with the token of the pod, which the kubelet renews, then become the program.
_START = """set -eu
mkdir -p "/proc/1/root${KUBECONFIG%/*}"
account=$(cd /proc/1/root && ls -d var/lib/kubelet/pods/"$POD_UID"/volumes/kubernetes.io~projected/*)
cat >"/proc/1/root$KUBECONFIG" <<END
apiVersion: v1
kind: Config
clusters:
- name: testbed
  cluster: {server: "https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT", certificate-authority: "/$account/ca.crt"}
users: [{name: driver, user: {tokenFile: "/$account/token"}}]
contexts: [{name: testbed, context: {cluster: testbed, user: driver}}]
current-context: testbed
END
exec nsenter -t 1 -m -- "$@"
"""


def rendered(driver_file: DriverFile, process: Process) -> str:
    """Return the objects as YAML."""
    return yaml.safe_dump_all(_objects(driver_file, process), sort_keys=False)


def _objects(driver_file: DriverFile, process: Process) -> list[Object]:
    pods = driver_file.pods
    name, namespace = pods.namespace, pods.namespace
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    place = {"name": name, "namespace": namespace}
    key, _, value = pods.selector.partition("=")
    labels = {key: value}
    spec: Object = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": _pod(driver_file, process)},
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": [account],
        },
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {**place, "labels": labels}, "spec": spec},
    ]


def _pod(driver_file: DriverFile, process: Process) -> Object:
    nodes = driver_file.nodes
    container: Object = {
        "name": driver_file.pods.container,
        "image": WORKLOAD.reference,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", _START, "sh", *(_filled(each, driver_file) for each in process.argv)],
        "env": _environment(driver_file, process),
        "securityContext": {"privileged": True, "runAsUser": 0},
    }
    return {
        "serviceAccountName": driver_file.pods.namespace,
        "priorityClassName": "system-node-critical",
        "hostPID": True,
        "hostNetwork": True,
        "nodeSelector": {**nodes.selector, **nodes.labels},
        "tolerations": [each.model_dump(by_alias=True, exclude_defaults=True) for each in nodes.tolerations],
        "terminationGracePeriodSeconds": 10,
        "containers": [container],
    }


def _environment(driver_file: DriverFile, process: Process) -> list[Object]:
    fields = {"NODE_NAME": "spec.nodeName", "POD_UID": "metadata.uid"}
    values = {
        "KUBECONFIG": _kubeconfig(driver_file),
        **{name: _filled(value, driver_file) for name, value in process.environment.items()},
    }
    return [
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
        *({"name": name, "value": value} for name, value in values.items() if name not in fields),
    ]


def _filled(text: str, driver_file: DriverFile) -> str:
    """Return a text of the driver file with its variables. What the kubelet would replace as its own variable is kept."""
    variables: dict[str, Any] = {
        "node": _NODE,
        "pod_uid": _POD,
        "driver_name": driver_file.driver,
        "kubeconfig": _kubeconfig(driver_file),
    }
    return render(text.replace("$(", "$$("), variables, name="spec.install.process", allow_unused=True)


def _kubeconfig(driver_file: DriverFile) -> str:
    return f"/run/dra-testbed/{driver_file.driver}/kubeconfig"

from __future__ import annotations

from typing import Any

import pytest

from testbed.drivers.host_access import host_access

_SPEC: dict[str, Any] = {
    "hostPID": True,
    "containers": [{"securityContext": {"privileged": True, "capabilities": {"add": ["SYS_ADMIN"]}}}],
    "initContainers": [{"name": "prepare"}],
    "volumes": [{"hostPath": {"path": "/dev"}}, {"emptyDir": {}}],
}
_FOUND = ["a privileged container", "hostPID", "the capability SYS_ADMIN", "the node's /dev"]


@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "Pod", "spec": _SPEC},
        {"kind": "DaemonSet", "spec": {"template": {"spec": _SPEC}}},
        {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": _SPEC}}}}},
    ],
)
def test_what_reaches_the_node_is_listed(workload: dict[str, Any]) -> None:
    assert host_access([workload, workload]) == _FOUND


def test_other_objects_request_nothing() -> None:
    assert host_access([{"kind": "ConfigMap"}, {"kind": "Pod", "spec": {"containers": [{}], "volumes": None}}]) == []

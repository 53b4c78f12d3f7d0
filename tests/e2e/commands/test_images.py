"""Images of programs on a real cluster: made and loaded by commands, and used by pods that meet the Pod Security Standard `restricted`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.bringup import Testbed
from testbed.cli.main import run
from testbed.errors import ApiError
from testbed.images.basics import WORKLOAD
from testbed.images.busybox import static_busybox
from testbed.vocabulary.pods.pod_settings import restricted

NAMESPACE = "restricted"


def _pod(image: str, *command: str) -> dict[str, Any]:
    container = {"name": "c", "image": image, "imagePullPolicy": "Never", "command": list(command)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": NAMESPACE},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    }


@pytest.fixture
def namespace(kubectl: Any) -> Iterator[None]:
    """Create a namespace in which the Pod Security Standard restricted is enforced."""
    kubectl("create", "namespace", NAMESPACE)
    kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    kubectl("create", "serviceaccount", "default", "--namespace", NAMESPACE, check=False)
    yield
    kubectl("delete", "namespace", NAMESPACE, "--wait=true")


def _run(kubectl: Any, pod: dict[str, Any]) -> str:
    """Create a pod, wait until it is Ready, and return its phase."""
    kubectl("create", "-f", "-", stdin=json.dumps(pod))
    kubectl("wait", "--namespace", NAMESPACE, "--for=condition=Ready", "pod/p", "--timeout=50s")
    return str(kubectl("get", "pod", "p", "--namespace", NAMESPACE, "-o", "jsonpath={.status.phase}").stdout)


def test_a_pod_runs_a_program_whose_image_was_made_and_loaded(
    testbed: Testbed, kubectl: Any, namespace: None, tmp_path: Path
) -> None:
    program, archive = static_busybox(tmp_path), tmp_path / "program.tar"
    options = ["--as", "acme-tool", "--at", "/bin/busybox", "--entrypoint", "", "--output", str(archive)]

    assert run(["images", "program", str(program), *options]) == 0
    assert run(["images", "load", str(archive), "--name", testbed.name]) == 0
    assert _run(kubectl, restricted(_pod("acme-tool", "/bin/busybox", "sleep", "600"))) == "Running"


def test_test_pods_are_admitted_where_the_standard_restricted_is_enforced(
    testbed: Testbed, kubectl: Any, namespace: None
) -> None:
    plain = _pod(WORKLOAD.reference, "sleep", "600")
    with pytest.raises(ApiError, match="violates PodSecurity"):
        testbed.kube.create(plain)

    assert _run(kubectl, restricted(plain)) == "Running"
    assert kubectl("exec", "--namespace", NAMESPACE, "p", "--", "id", "-u").stdout.strip() == "65534"

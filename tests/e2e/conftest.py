"""Fixtures for the tests against real clusters, which need root and take minutes. `tox -e cluster` runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import binaries
from testbed.bringup import Testbed, bring_up, tear_down
from testbed.models.config import effective
from testbed.process import Completed, run
from testbed.progress import Silent
from testbed.waiting import Budget, NotYet, eventually

WORKLOAD = "localhost/dra-testbed/workload:1"
POD = Budget("pod state", 60, "scheduling and the start of a container whose image is on the node")


class Kubectl:
    """kubectl with the kubeconfig of a testbed."""

    def __init__(self, testbed: Testbed) -> None:
        programs = binaries.ensure(binaries.lock_for(testbed.config.kubernetes), ["kubectl"], progress=Silent())
        self.program, self.kubeconfig = programs["kubectl"], testbed.folder / "kubeconfig"

    def __call__(self, *argv: str, stdin: str | None = None, check: bool = True) -> Completed:
        return run([self.program, f"--kubeconfig={self.kubeconfig}", *argv], input=stdin, check=check, timeout=60)

    def run_pod(
        self, name: str, script: str, node: str = "", image: str = WORKLOAD, *, is_privileged: bool = False
    ) -> str:
        """Start a pod and return its IP address when it runs."""
        placed = f"nodeName: {node}" if node else ""
        manifest = f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 0
  {placed}
  containers:
  - name: main
    image: {image}
    command: [sh, -c, {script!r}]
    securityContext: {{privileged: {str(is_privileged).lower()}}}
"""
        self("apply", "-f", "-", stdin=manifest)

        def running() -> str:
            phase, _, address = self(
                "get", "pod", name, "-o", "jsonpath={.status.phase} {.status.podIP}"
            ).stdout.partition(" ")
            if phase != "Running" or not address:
                raise NotYet(f"{phase} {address}")
            return address

        return eventually(running, f"pod {name} to run", POD)


@pytest.fixture(scope="module")
def testbed(request: pytest.FixtureRequest) -> Iterator[Testbed]:
    """Return a testbed without a driver for one module of tests."""
    if os.geteuid() != 0:
        pytest.fail("these tests need root")
    name = "test-" + Path(request.node.name).stem.removeprefix("test_").replace("_", "-")[:20]
    tear_down(name, Silent())
    yield bring_up(effective(None, {"name": name, "driver": "none"}), Silent(), ephemeral=True)
    tear_down(name, Silent())


@pytest.fixture(scope="module")
def kubectl(testbed: Testbed) -> Kubectl:
    """Return kubectl for the testbed."""
    return Kubectl(testbed)

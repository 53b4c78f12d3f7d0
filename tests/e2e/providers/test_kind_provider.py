"""The kind provider beyond the contract of all providers (test_provider_contract.py): foreign clusters, and a killed `up`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import binaries, images, process
from testbed.binaries import lock_for
from testbed.progress import Silent

pytestmark = pytest.mark.kind
CI = Path(__file__).parents[3] / "ci"
TESTBED = [sys.executable, "-m", "testbed.cli.main"]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the kubeconfig of a cluster that was made with plain kind, and our images loaded as the documentation describes."""
    kind = binaries.ensure(lock_for("1.37"), ["kind"], progress=Silent())["kind"]
    node, kubeconfig = images.node(lock_for("1.37"), Silent()), tmp_path_factory.mktemp("theirs") / "kubeconfig"
    process.run(["docker", "load", "--input", str(node.archive)], timeout=300)
    config = kubeconfig.with_name("kind.yaml")
    config.write_text(
        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: control-plane}, {role: worker}, {role: worker}]\n"
    )
    create = ["create", "cluster", "--name", "theirs", "--image", node.reference, "--config", str(config)]
    process.run([kind, *create, "--kubeconfig", str(kubeconfig), "--wait", "120s"], timeout=400)
    try:
        for image in (images.workload(Silent()), images.driver(Silent())):
            process.run([kind, "load", "image-archive", "--name", "theirs", str(image.archive)], timeout=200)
        yield kubeconfig
    finally:
        process.run([kind, "delete", "cluster", "--name", "theirs", "--kubeconfig", str(kubeconfig)], timeout=120)


def dra(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run dra-testbed as a user does."""
    return subprocess.run([*TESTBED, *argv], capture_output=True, text=True, timeout=580, check=False)


def test_a_cluster_made_with_plain_kind_gives_the_same_verdicts(theirs: Path, tmp_path: Path) -> None:
    flags = ["--provider", "existing", "--kubeconfig", str(theirs)]
    run = dra("run", *flags, "-k", "two_claims_from_one_template or pool", "--report", str(tmp_path / "report"))

    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"is partial: [1-9]\d* pass, \d+ excluded", run.stdout)  # only a selection was run
    left = process.run(["docker", "exec", "theirs-control-plane", "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf",
                        "get", "namespaces", "-o", "json"])  # fmt: skip
    names = {each["metadata"]["name"] for each in json.loads(left.stdout)["items"]}
    assert not {name for name in names if name.startswith("dra-")}


@pytest.mark.usefixtures("theirs")
def test_sweep_removes_the_cluster_of_a_killed_up_and_keeps_a_foreign_one() -> None:
    rounds = subprocess.run(
        [sys.executable, CI / "kill_and_sweep.py", "--provider", "kind", "3"],
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )

    assert rounds.returncode == 0, rounds.stdout + rounds.stderr

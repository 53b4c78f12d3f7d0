"""The provider `existing` on a local cluster without a driver, through the command line.

The user is an administrator, or has only the permissions of a shipped role.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import folders, images
from testbed.bringup import Testbed
from testbed.kube.client import Kube
from testbed.kube.discovery import find_labelled
from testbed.kube.ownership import ANY_TESTBED
from testbed.progress import Silent
from testbed.runs.pytest_process import plugin_options
from testbed.waiting import Budget, eventually_true

TESTBED = [sys.executable, "-m", "testbed.cli.main"]
ROLES = folders.data("manifests") / "clusters"
# One requirement of each kind: claims from a template, a DaemonSet, a shared claim, and static ones. `tox -e kind` runs all.
SOME = ["-k", "from_one_template or starts_on_every_node or two_pods_share_one_claim or every_pool or published_twice"]
MOMENT = Budget("a moment", 60, "a command starts and makes its first objects")


def dra(*argv: str, state: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run dra-testbed as a user does; with another state folder, as a user on another host does."""
    env = {**os.environ, **({"DRA_TESTBED_STATE": str(state)} if state else {})}
    return subprocess.run([*TESTBED, *argv], capture_output=True, text=True, timeout=300, check=False, env=env)


def verdicts(done: subprocess.CompletedProcess[str], report: Path) -> dict[str, str]:
    """Return the verdict of each requirement in the report of a run."""
    assert (report / "report.yaml").exists(), done.stdout + done.stderr
    rows = yaml.safe_load((report / "report.yaml").read_text())["requirements"]
    return {row["id"]: row["verdict"] for row in rows if row["verdict"] not in ("excluded", "not-applicable")}


def supported(done: subprocess.CompletedProcess[str], report: Path) -> dict[str, str]:
    """Return the verdicts without cluster-unsupported ones: an existing cluster has fewer capabilities than a made one."""
    return {name: verdict for name, verdict in verdicts(done, report).items() if verdict != "cluster-unsupported"}


def testbed_objects(kube: Kube) -> set[str]:
    """Return the objects that testbeds created in the cluster."""
    return {f"{each['kind']}/{each['metadata']['name']}" for each in find_labelled(kube, ANY_TESTBED).objects}


def is_there(kube: Kube, kind: str, start: str) -> bool:
    return any(name.startswith(f"{kind}/{start}") for name in testbed_objects(kube))


@pytest.fixture(scope="module")
def admin(testbed: Testbed) -> list[str]:
    """Return the flags of an administrator of a cluster that has the driver's image."""
    cluster: Any = testbed.cluster
    image = images.driver(Silent())
    cluster.load_image(image.archive)
    return ["--provider", "existing", "--kubeconfig", _kubeconfig(testbed), "--driver-image", image.reference]


def _kubeconfig(testbed: Testbed) -> str:
    return str(testbed.folder / "kubeconfig")


@pytest.fixture(scope="module")
def installed(testbed: Testbed, admin: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a driver file without `install`, for the driver that testbed `theirs` has installed."""
    up = dra("up", *admin, "--name", "theirs")
    assert up.returncode == 0, up.stderr
    content = yaml.safe_load((folders.data("manifests") / "drivers/fake-gpu.yaml").read_text())
    del content["spec"]["install"], content["spec"]["companions"]
    file = tmp_path_factory.mktemp("driver") / "in-place.yaml"
    file.write_text(yaml.safe_dump(content))
    yield file
    down = dra("down", "--name", "theirs")
    assert down.returncode == 0, down.stderr
    assert testbed_objects(testbed.kube) == set()


def user_with_role(testbed: Testbed, level: str, folder: Path) -> str:
    """Return the kubeconfig of a service account that has exactly the permissions of the level's shipped role."""
    kube, name = testbed.kube, f"judge-{level}"
    role = yaml.safe_load((ROLES / f"{name}.yaml").read_text())
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    for each in (role, account, binding):
        kube.apply(each)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
    token = kube.request("POST", path, body=request)["status"]["token"]
    config = yaml.safe_load((testbed.folder / "kubeconfig").read_text())
    config["users"][0]["user"] = {"token": token}
    file = folder / f"{level}.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return str(file)


def test_sweep_removes_what_a_killed_up_created_and_nothing_else(testbed: Testbed, admin: list[str]) -> None:
    kube = testbed.kube
    kube.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "default"}})
    up = subprocess.Popen([*TESTBED, "up", *admin, "--name", "killed"])
    assert eventually_true(lambda: is_there(kube, "ClusterRoleBinding", "gpu"), MOMENT, longest_pause=0.05)
    up.kill()
    up.wait()
    elsewhere = dra("sweep", "--kubeconfig", _kubeconfig(testbed), state=testbed.folder / "other-state")
    swept = dra("sweep", "--kubeconfig", _kubeconfig(testbed))

    assert elsewhere.returncode == swept.returncode == 0, elsewhere.stderr + swept.stderr
    assert "ClusterRoleBinding" in elsewhere.stdout or "testbed killed" in swept.stdout
    assert testbed_objects(kube) == set()
    assert kube.find("v1", "ConfigMap", "theirs", "default")


def test_an_existing_namespace_is_unchanged_after_the_driver_was_removed(testbed: Testbed, admin: list[str]) -> None:
    kube = testbed.kube
    theirs: dict[str, Any] = {"name": "dra-testbed-driver", "labels": {"team": "blue"}}
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": theirs}, manager="kubectl")
    before = kube.get("v1", "Namespace", theirs["name"])["metadata"]["labels"]
    up = dra("up", *admin, "--name", "guest")
    meanwhile = kube.get("v1", "Namespace", theirs["name"])["metadata"]["labels"]
    down = dra("down", "--name", "guest")
    after = kube.get("v1", "Namespace", theirs["name"])["metadata"]["labels"]
    kube.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": theirs})
    gone = eventually_true(lambda: kube.find("v1", "Namespace", theirs["name"]) is None, MOMENT)

    assert (up.returncode, down.returncode) == (0, 0), up.stderr + down.stderr
    assert meanwhile != before, "the driver's manifests ask for privileged pods"
    assert (after, gone) == (before, True)


def test_the_verdicts_are_those_of_the_clusters_own_provider(testbed: Testbed, installed: Path, tmp_path: Path) -> None:
    own = dra("run", *SOME, "--testbed", testbed.name, "--driver", str(installed), "--report", str(tmp_path / "own"))
    existing = dra("run", *SOME, "--testbed", "theirs", "--report", str(tmp_path / "existing"))

    assert supported(own, tmp_path / "own") == supported(existing, tmp_path / "existing")
    assert set(supported(existing, tmp_path / "existing").values()) == {"pass"}
    assert json.loads(dra("status", "--name", "theirs", "-o", "json").stdout)["kubernetes"].startswith("1.")


def test_a_user_with_the_shipped_role_can_judge_an_installed_driver(
    testbed: Testbed, installed: Path, tmp_path: Path
) -> None:
    report, kubeconfig = tmp_path / "report", user_with_role(testbed, "workloads", tmp_path)
    words = ["--provider", "existing", "--kubeconfig", kubeconfig]
    done = dra("run", *SOME, *words, "--driver", str(installed), "--report", str(report))
    refused = dra("run", *SOME, *words, "--report", str(tmp_path / "none"))

    assert done.returncode == 0, done.stdout + done.stderr
    assert set(supported(done, report).values()) == {"pass"}
    assert refused.returncode in (2, 3), "installing a driver is more than this user may do"


def test_a_read_only_user_can_judge_static_requirements_and_creates_nothing(
    testbed: Testbed, installed: Path, tmp_path: Path
) -> None:
    report, kubeconfig = tmp_path / "report", user_with_role(testbed, "read-only", tmp_path)
    before = testbed_objects(testbed.kube)
    words = ["--provider", "existing", "--kubeconfig", kubeconfig, "--driver", str(installed)]
    done = dra("run", *SOME, *words, "--allow", "read-only", "--report", str(report))
    more = dra("run", *SOME, *words, "--report", str(tmp_path / "none"))

    assert done.returncode == 0, done.stdout + done.stderr
    assert verdicts(done, report)["SLICE-001"] == "pass"
    assert verdicts(done, report)["CLAIM-001"] == "cluster-unsupported"
    assert (more.returncode, "create, delete, get, list, patch namespaces" in more.stderr) == (3, True)
    assert testbed_objects(testbed.kube) == before


@pytest.mark.usefixtures("installed")
def test_a_second_testbed_with_the_same_driver_is_refused_and_changes_nothing(
    testbed: Testbed, admin: list[str], tmp_path: Path
) -> None:
    before = testbed_objects(testbed.kube)
    second = dra("up", *admin, "--name", "theirs", state=tmp_path)
    down = dra("down", "--name", "theirs", state=tmp_path)

    assert second.returncode == 2
    assert "belongs to testbed theirs of host" in second.stderr
    assert "there is no testbed theirs" in down.stdout
    assert testbed_objects(testbed.kube) == before


@pytest.mark.usefixtures("installed")
def test_programs_run_on_nodes_only_if_allowed(admin: list[str]) -> None:
    up = dra("up", *admin, "--driver", "none", "--name", "nodes", "--allow", "restart")
    record = json.loads((folders.state() / "nodes/cluster/cluster.json").read_text())
    down = dra("down", "--name", "nodes")

    assert up.returncode == 0, up.stderr
    able = ["act-as-driver", "change-driver", "make-objects", "run-on-node"]
    assert record["capabilities"] == able, "these nodes have no systemd to restart parts by"
    assert down.returncode == 0, down.stderr


@pytest.mark.usefixtures("installed")
def test_a_testbed_that_is_up_is_never_swept(testbed: Testbed) -> None:
    before = testbed_objects(testbed.kube)
    swept = dra("sweep", "--kubeconfig", _kubeconfig(testbed))

    assert "it is up" in swept.stderr
    assert testbed_objects(testbed.kube) == before


@pytest.mark.usefixtures("installed")
def test_down_removes_the_objects_of_killed_tests(testbed: Testbed, tmp_path: Path) -> None:
    """The fixture's `down` removes them: the driver still runs when the pods terminate."""
    suites = [sys.executable, "-m", "pytest", str(folders.data("suites")), "-p", "no:cacheprovider", "-k", "every_node"]
    words = [*plugin_options(), "--testbed", "theirs", "--report", str(tmp_path / "report")]
    tests = subprocess.Popen([*suites, *words], stdout=subprocess.DEVNULL)
    assert eventually_true(lambda: is_there(testbed.kube, "DaemonSet", "one-per-node"), MOMENT, longest_pause=0.05)
    tests.kill()
    tests.wait()

    assert is_there(testbed.kube, "Namespace", "dra-reg-001-")

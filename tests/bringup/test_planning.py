"""What `--plan` shows for a cluster that would be made, and for an existing one, which it does not change."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed import folders
from testbed.cli.main import run
from testbed.models.sections import Allow
from testbed.providers.existing.required_permissions import of_level
from tests.fakes import api_server
from tests.fakes.api_server import ApiServer

METRICS = 'kubernetes_feature_enabled{name="DRAAdminAccess"} 1\nkubernetes_feature_enabled{name="Other"} 1\n'
SLICES = "GET /apis/resource.k8s.io/v1/resourceslices"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server.running() as made:
        made.answers["GET /metrics"] = (200, METRICS)
        made.answers[SLICES] = (200, {"items": []})
        for namespace in ("dra-testbed-driver", "dra-testbed-nic-driver"):
            made.answers[f"GET /api/v1/namespaces/{namespace}/pods"] = (200, {"items": []})
        yield made


def _plan(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert run(["up", "--plan", "-o", "json", *words]) == 0
    assert not list(folders.state().glob("[!.]*"))
    return json.loads(capsys.readouterr().out)


def _existing(server: ApiServer, folder: Path) -> list[str]:
    images = ["--workload-image", "r.example/w", "--driver-image", "r.example/d"]
    return ["--provider", "existing", "--kubeconfig", str(server.kubeconfig(folder)), *images]


def test_the_plan_for_a_new_cluster_lists_every_object_of_its_driver(capsys: pytest.CaptureFixture[str]) -> None:
    plan = _plan(capsys, "--name", "gpus", "--nodes", "3")
    assert (plan["cluster"], plan["nodes"]) == ("gpus, made by provider local", 3)
    assert "DaemonSet fake-gpu-driver in namespace dra-testbed-driver" in plan["objects"]
    assert "ClusterRole gpu.dra-testbed.example" in plan["objects"]
    assert "DaemonSet fake-nic-driver in namespace dra-testbed-nic-driver" in plan["objects"]
    assert plan["driver"] == "gpu.dra-testbed.example is installed; with companion nic.dra-testbed.example"


def test_the_plan_without_a_driver_has_no_objects(capsys: pytest.CaptureFixture[str]) -> None:
    assert _plan(capsys, "--driver", "none")["objects"] == []


@pytest.fixture
def vendors(tmp_path: Path) -> Path:
    """Write the driver file of a vendor whose manifest always pulls, with an archive of the image under another name."""
    with tarfile.open(tmp_path / "image.tar", "w") as tar:
        content = json.dumps([{"RepoTags": ["localhost/driver:1"]}]).encode()
        member = tarfile.TarInfo("manifest.json")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    container = {"name": "plugin", "image": "registry.example/driver:2", "imagePullPolicy": "Always"}
    metadata = {"name": "plugin", "namespace": "acme"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    (tmp_path / "install.yaml").write_text(json.dumps(pod))
    (tmp_path / "driver.yaml").write_text(
        "apiVersion: dra-testbed/v1alpha1\nkind: DriverFile\nmetadata: {name: acme}\nspec:\n"
        "  driver: acme.example\n  devices: {classes: [acme.example]}\n"
        "  install: {manifests: [install.yaml], images: [image.tar]}\n"
        "  pods: {namespace: acme, selector: app=acme, container: plugin}\n"
        "  probe: {env: '(?P<name>x)'}\n"
    )
    return tmp_path / "driver.yaml"


def test_the_plan_for_a_new_cluster_has_each_change_of_a_vendors_manifests(
    capsys: pytest.CaptureFixture[str], vendors: Path
) -> None:
    plugin = "driver acme.example: container plugin of Pod plugin"
    assert _plan(capsys, "--driver", str(vendors))["remarks"] == [
        f"{plugin}: image registry.example/driver:2 is localhost/driver:1, which is loaded into the nodes",
        f"{plugin}: imagePullPolicy Always is IfNotPresent",
    ]


def test_the_plan_for_an_existing_cluster_says_that_images_are_not_loaded(
    capsys: pytest.CaptureFixture[str], vendors: Path, server: ApiServer, tmp_path: Path
) -> None:
    server.answers["GET /api/v1/namespaces/acme/pods"] = (200, {"items": []})
    remarks = _plan(capsys, *_existing(server, tmp_path), "--driver", str(vendors))["remarks"]
    assert "image localhost/driver:1 of the driver file is not loaded: the cluster must have it or pull it" in remarks
    assert not [each for each in remarks if "IfNotPresent" in each]


def test_planning_for_an_existing_cluster_only_reads(
    capsys: pytest.CaptureFixture[str], server: ApiServer, tmp_path: Path
) -> None:
    plan = _plan(capsys, *_existing(server, tmp_path))
    assert plan["cluster"].startswith(f"{server.url} (context here of ")
    assert (plan["kubernetes"], plan["nodes"], plan["dynamicResourceGates"]) == ("1.37.1", 1, ["DRAAdminAccess"])
    assert "create, delete, get, list, patch, watch pods" in plan["rights"]
    assert "create, delete, get, patch configmaps in namespace dra-testbed-driver" in plan["rights"]
    assert "list configmaps" in plan["rights"], "down finds them by label, in all namespaces"
    assert "what needs reboot-node" in plan["leftOut"]
    assert "what needs reset-node" not in plan["leftOut"], "no requirement needs it"
    assert server.writes == []


def test_the_plan_for_a_read_only_cluster_installs_nothing(
    capsys: pytest.CaptureFixture[str], server: ApiServer, tmp_path: Path
) -> None:
    plan = _plan(capsys, *_existing(server, tmp_path), "--allow", "read-only")
    assert (plan["objects"], plan["driver"]) == ([], "gpu.dra-testbed.example is judged as installed there")
    assert plan["rights"] == ["list nodes", "list resourceslices.resource.k8s.io"]
    assert "what needs make-objects" in plan["leftOut"]


def test_the_text_of_the_plan_has_the_same_content(
    capsys: pytest.CaptureFixture[str], server: ApiServer, tmp_path: Path
) -> None:
    assert run(["up", "--plan", *_existing(server, tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "makes        DeviceClass gpu.dra-testbed.example" in shown
    assert "leaves out   what needs reboot-node" in shown
    assert "gates        DRAAdminAccess" in shown


def test_the_plan_of_a_run_lists_what_its_tests_create_and_uses_the_facts_of_the_cluster(
    capsys: pytest.CaptureFixture[str], server: ApiServer, tmp_path: Path
) -> None:
    words = ["run", "--plan", "-o", "json", *_existing(server, tmp_path)]
    assert run(words) == 0
    plan = {row["id"]: row for row in json.loads(capsys.readouterr().out)}
    assert plan["CLAIM-001"]["makes"] == "namespace dra-claim-001-…: ResourceClaimTemplate, Pod"
    assert (plan["SLICE-001"]["plan"], plan["SLICE-001"]["makes"]) == ("run", "")
    assert run([*words, "--allow", "read-only"]) == 0
    plan = {row["id"]: row for row in json.loads(capsys.readouterr().out)}
    assert (plan["CLAIM-001"]["plan"], plan["SLICE-001"]["plan"]) == ("cluster-unsupported", "run")
    assert server.writes == []


def test_all_missing_permissions_for_the_installation_are_reported_together(
    capsys: pytest.CaptureFixture[str], server: ApiServer, tmp_path: Path
) -> None:
    level = [
        {"verbs": [each.verb], "apiGroups": [each.group], "resources": [each.resource]}
        for each in of_level(Allow.WORKLOADS)
    ]
    server.answers["POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews"] = api_server.rules_review(*level)
    assert run(["up", "--plan", *_existing(server, tmp_path)]) == 3
    said = capsys.readouterr().err
    assert "this user may not install the driver" in said
    assert "create, delete, get, patch configmaps in namespace dra-testbed-driver" in said
    assert "pods" not in said


@pytest.mark.parametrize("may_copy", [True, False])
def test_a_missing_permission_to_copy_the_pull_secret_is_reported(
    capsys: pytest.CaptureFixture[str], server: ApiServer, tmp_path: Path, may_copy: bool
) -> None:
    verbs = ["create", "patch", "delete"] if may_copy else []
    secrets = {"verbs": verbs, "apiGroups": [""], "resources": ["secrets"]}
    level = [
        {"verbs": [each.verb], "apiGroups": [each.group], "resources": [each.resource]}
        for each in of_level(Allow.WORKLOADS)
    ]
    server.answers["POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews"] = api_server.rules_review(
        *level, secrets
    )
    driver = tmp_path / "driver.yaml"
    driver.write_text(
        "apiVersion: dra-testbed/v1alpha1\nkind: DriverFile\nmetadata: {name: acme}\nspec:\n"
        "  driver: acme.example\n  devices: {classes: [acme.example]}\n"
        "  install: {installed: true, pullSecret: registry}\n"
        "  pods: {namespace: acme, selector: app=acme, container: plugin}\n"
        "  probe: {env: '(?P<name>x)'}\n"
    )
    code = run(["up", "--plan", *_existing(server, tmp_path), "--driver", str(driver)])
    said = capsys.readouterr()
    assert code == (0 if may_copy else 3)
    assert ("may not copy the Secret of spec.install.pullSecret" in said.err) is not may_copy


def test_json_is_for_the_plan() -> None:
    assert run(["up", "-o", "json"]) == 2

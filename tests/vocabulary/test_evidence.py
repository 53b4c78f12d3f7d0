from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from testbed import process
from testbed.errors import ApiError
from testbed.providers.base import Capability
from testbed.vocabulary import evidence
from testbed.vocabulary.scenario import new_scenario
from testbed.vocabulary.world import World

Make = Callable[..., World]


def test_objects_events_and_logs_of_the_test_and_of_the_driver_are_kept(world: Make, tmp_path: Path) -> None:
    here = world("no-pods-start")
    kube: Any = here.kube
    kube.put(
        "Pod",
        "driver-1",
        "dra-testbed-driver",
        spec={"containers": []},
        metadata={"labels": {"app": "fake-gpu-driver"}},
    )
    kube.log_texts["driver-1/driver"] = "prepare refused\n"
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        kube.log_texts["first/cat"] = "hello\n"
        scenario.capture(tmp_path / "kept")
    kept = {str(path.relative_to(tmp_path / "kept")) for path in (tmp_path / "kept").rglob("*") if path.is_file()}
    assert kept == {
        "pods.yaml", "resourceclaims.yaml", "resourceslices.yaml", "nodes.yaml", "events.txt",
        "logs/first.cat.log", "logs/second.cat.log", "driver/driver-1.driver.log",
    }  # fmt: skip
    assert (tmp_path / "kept/logs/first.cat.log").read_text() == "hello\n"
    assert "the log cannot be read: " in (tmp_path / "kept/logs/second.cat.log").read_text()
    assert (tmp_path / "kept/driver/driver-1.driver.log").read_text() == "prepare refused\n"


def test_a_missing_driver_is_noted(world: Make, tmp_path: Path) -> None:
    evidence.capture(world("slices-missing"), "somewhere", tmp_path)
    missing = (tmp_path / "missing.txt").read_text()
    assert "slices: gpu.dra-testbed.example publishes no ResourceSlice\n" in missing
    assert "no pod of the driver (app=fake-gpu-driver in namespace dra-testbed-driver) exists\n" in missing


@pytest.mark.parametrize(("ended", "files"), [("08:59:59", {"log"}), ("09:00:07", {"log", "previous.log"})])
def test_the_drivers_log_starts_with_the_test(world: Make, tmp_path: Path, ended: str, files: set[str]) -> None:
    here = world()
    kube: Any = here.kube
    terminated = {"terminated": {"finishedAt": f"2026-01-01T{ended}Z"}}
    status = {"containerStatuses": [{"name": "driver", "lastState": terminated}]}
    labels = {"labels": {"app": "fake-gpu-driver"}}
    kube.put("Pod", "d", "dra-testbed-driver", spec={"containers": []}, status=status, metadata=labels)
    kube.put("Namespace", "mine", metadata={"creationTimestamp": "2026-01-01T09:00:00Z"})
    kube.log_texts |= {"d/driver": "", "d/driver/previous": "panic\n"}
    evidence.capture(here, "mine", tmp_path)
    assert {path.name for path in (tmp_path / "driver").iterdir()} == {f"d.driver.{each}" for each in files}
    assert set(kube.since) == {"2026-01-01T09:00:00Z"}
    assert (tmp_path / "driver/d.driver.log").read_text().startswith("no output since 2026-01-01T09:00:00Z")


class _Node:
    """This host, with a folder for the CDI files."""

    name = "node-1"

    def run(self, *argv: str, check: bool = True) -> Any:
        return process.run(argv, check=check)


def _with_cdi_files(world: Make, folder: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr("testbed.vocabulary.cluster.cdi_files.FOLDERS", (str(folder),))
    cluster: Any = SimpleNamespace(capabilities={Capability.RUN_ON_NODE}, nodes=lambda: [_Node()])
    return replace(world(), cluster=cluster)


def test_the_cdi_files_of_the_nodes_of_the_test_are_kept_without_secrets(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cdi").mkdir()
    spec = {"kind": "a/b", "devices": [{"name": "0", "containerEdits": {"env": ["GPU=1", "API_TOKEN=hunter2"]}}]}
    (tmp_path / "cdi/a.json").write_text(json.dumps(spec))
    here = _with_cdi_files(world, tmp_path / "cdi", monkeypatch)
    evidence.capture(here, "mine", tmp_path / "none")
    assert not (tmp_path / "none/cdi").exists()
    kube: Any = here.kube
    kube.put("Pod", "p", "mine", spec={"nodeName": "node-1", "containers": []})
    evidence.capture(here, "mine", tmp_path / "into")
    listing, kept = sorted((tmp_path / "into/cdi/node-1").iterdir(), key=lambda each: each.name != "listing.txt")
    assert "a.json" in listing.read_text()
    assert "GPU=1" in kept.read_text()
    assert "hunter2" not in kept.read_text()
    evidence.capture(replace(here, cluster=None), "mine", tmp_path / "other")
    assert not (tmp_path / "other/cdi").exists()


def test_only_objects_of_the_test_are_kept_and_no_secret(world: Make, tmp_path: Path) -> None:
    here = world()
    kube: Any = here.kube
    with new_scenario(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        kube.put("Secret", "token", scenario.namespace, data={"token": "c2VjcmV0"})
        kube.put("ConfigMap", "token", scenario.namespace, data={"token": "c2VjcmV0"})
        kube.put("ResourceClaim", "foreign", "elsewhere", spec={})
        scenario.capture(tmp_path)
    text = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "c2VjcmV0" not in text
    assert "foreign" not in text


def test_taints_and_conditions_of_nodes_are_kept_and_no_name_is_used_as_a_path(world: Make, tmp_path: Path) -> None:
    here = world()
    kube: Any = here.kube
    taints = [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]
    status = {"conditions": [{"type": "DiskPressure", "status": "True"}], "addresses": [{"address": "192.0.2.1"}]}
    kube.put("Node", "../odd", spec={"taints": taints, "podCIDR": "192.0.2.0/24"}, status=status)
    evidence.capture(here, "somewhere", tmp_path / "kept")
    text = (tmp_path / "kept/nodes.yaml").read_text()
    (odd,) = (each for each in yaml.safe_load_all(text) if each["metadata"] == {"name": "../odd"})
    assert (odd["spec"], odd["status"]) == ({"taints": taints}, {"conditions": status["conditions"]})
    assert "192.0.2." not in text
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_managed_fields_are_left_out(world: Make, tmp_path: Path) -> None:
    here = world()
    with new_scenario(here, "CLAIM-001") as scenario:
        kube: Any = here.kube
        kube.put("ResourceClaim", "c", scenario.namespace, metadata={"managedFields": [{"manager": "x"}]})
        scenario.capture(tmp_path)
    (claim,) = yaml.safe_load_all((tmp_path / "resourceclaims.yaml").read_text())
    assert "managedFields" not in claim["metadata"]


def test_an_unreachable_api_server_is_noted(world: Make, tmp_path: Path) -> None:
    here = world()
    kube: Any = here.kube
    kube.down = True
    evidence.capture(here, "somewhere", tmp_path)
    assert "connection refused" in (tmp_path / "missing.txt").read_text()
    with pytest.raises(ApiError):
        here.slices()


def test_no_file_contains_a_credential(world: Make, tmp_path: Path) -> None:
    canary, hidden = secrets.token_hex(12), secrets.token_hex(12)
    here = world()
    kube: Any = here.kube
    kube.put("Secret", "hidden", "mine", data={"harmless": base64.b64encode(hidden.encode()).decode()})
    env = [{"name": "API_TOKEN", "value": canary}, {"name": "HARMLESS", "value": hidden}]
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"password": canary})}
    kube.put(
        "Pod", "p", "mine", spec={"containers": [{"name": "c", "env": env}]}, metadata={"annotations": annotations}
    )
    config = [{"opaque": {"driver": "gpu", "parameters": {"licenseKey": canary, "note": f"as {hidden}"}}}]
    kube.put("ResourceClaim", "c", "mine", spec={"devices": {"config": config}})
    kube.put("Event", "p.1", "mine", message=f"https://me:{canary}@x", involvedObject={"kind": "Pod", "name": "p"})
    kube.log_texts["p/c"] = f"DB_PASSWORD={canary}\nHARMLESS={hidden}\nGPU=gpu-1\n"
    evidence.capture(here, "mine", tmp_path)
    texts = {str(each.relative_to(tmp_path)): each.read_text() for each in tmp_path.rglob("*") if each.is_file()}
    assert {"pods.yaml", "resourceclaims.yaml", "events.txt", "logs/p.c.log"} <= texts.keys()
    assert not [name for name, text in texts.items() if canary in text or hidden in text]
    assert "GPU=gpu-1" in texts["logs/p.c.log"]


def test_a_link_in_the_folder_is_not_followed(world: Make, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("of another\n")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/missing.txt").symlink_to(outside)
    evidence.capture(world("slices-missing"), "somewhere", tmp_path / "kept")
    assert outside.read_text() == "of another\n"
    assert "publishes no ResourceSlice" in (tmp_path / "kept/missing.txt").read_text()

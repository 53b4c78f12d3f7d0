from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.errors import ApiError
from testbed.vocabulary import evidence
from testbed.vocabulary.scenario import opened
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
    kube.texts["driver-1/driver"] = "prepare refused\n"
    with opened(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        kube.texts["first/cat"] = "hello\n"
        scenario.capture(tmp_path / "kept")
    kept = {str(path.relative_to(tmp_path / "kept")) for path in (tmp_path / "kept").rglob("*") if path.is_file()}
    assert kept == {
        "pods.yaml", "resourceclaims.yaml", "resourceslices.yaml", "nodes.yaml", "events.txt",
        "logs/first.cat.log", "logs/second.cat.log", "driver/driver-1.driver.log",
    }  # fmt: skip
    assert (tmp_path / "kept/logs/first.cat.log").read_text() == "hello\n"
    assert "no log: " in (tmp_path / "kept/logs/second.cat.log").read_text()
    assert (tmp_path / "kept/driver/driver-1.driver.log").read_text() == "prepare refused\n"


def test_only_what_belongs_to_the_test_is_kept_and_never_a_secret(world: Make, tmp_path: Path) -> None:
    here = world()
    kube: Any = here.kube
    with opened(here, "SHARE-001") as scenario:
        scenario.apply("sharing/two-pods-one-claim.yaml")
        kube.put("Secret", "token", scenario.namespace, data={"token": "c2VjcmV0"})
        kube.put("ConfigMap", "token", scenario.namespace, data={"token": "c2VjcmV0"})
        kube.put("ResourceClaim", "foreign", "elsewhere", spec={})
        scenario.capture(tmp_path)
    text = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "c2VjcmV0" not in text
    assert "foreign" not in text


def test_of_nodes_taints_and_conditions_are_kept_and_no_name_becomes_a_path(world: Make, tmp_path: Path) -> None:
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
    with opened(here, "CLAIM-001") as scenario:
        kube: Any = here.kube
        kube.put("ResourceClaim", "c", scenario.namespace, metadata={"managedFields": [{"manager": "x"}]})
        scenario.capture(tmp_path)
    (claim,) = yaml.safe_load_all((tmp_path / "resourceclaims.yaml").read_text())
    assert "managedFields" not in claim["metadata"]


def test_an_api_server_that_is_gone_leaves_a_note(world: Make, tmp_path: Path) -> None:
    here = world()
    kube: Any = here.kube
    kube.down = True
    evidence.capture(here, "somewhere", tmp_path)
    assert "connection refused" in (tmp_path / "missing.txt").read_text()
    with pytest.raises(ApiError):
        here.slices()

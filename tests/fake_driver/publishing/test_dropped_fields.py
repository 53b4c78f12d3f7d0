import json
from pathlib import Path

from fake_driver.devices.model import Device, Taint
from fake_driver.journal import Journal
from fake_driver.publishing.dropped_fields import DroppedFields
from fake_driver.publishing.slices import Object, Owner, for_node


def sent(*taints: Taint) -> Object:
    return for_node("gpu.example", Owner("n", "u"), (Device("gpu-0", "gpu", {}, {}, taints=taints),))[0]


def test_dropped_fields_are_reported_once_and_again_when_they_are_kept(tmp_path: Path) -> None:
    losses = DroppedFields(Journal(tmp_path / "journal"))
    wanted = sent(Taint("a", "NoSchedule"))
    for stored in (sent(), sent(), wanted, wanted):
        losses.compare_fields(wanted, stored)
    first, second = map(json.loads, (tmp_path / "journal").read_text().splitlines())
    assert first["event"] == "slice-fields-dropped"
    assert (first["count"], first["gates"]) == (2, ["DRADeviceTaints"])
    assert (second["count"], second["fields"]) == (0, [])
    assert losses.fields == {wanted["metadata"]["name"]: []}


def test_without_dropped_fields_nothing_is_reported(tmp_path: Path) -> None:
    DroppedFields(Journal(tmp_path / "journal")).compare_fields(sent(), sent())
    assert not (tmp_path / "journal").exists()

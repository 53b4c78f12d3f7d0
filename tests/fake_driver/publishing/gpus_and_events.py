"""Devices and journal entries for the tests of the publisher."""

import json
from pathlib import Path

from fake_driver.devices.model import Device
from fake_driver.publishing.slices import Object

DRIVER = "gpu.example"


def gpus(count: int) -> list[Device]:
    return [Device(f"gpu-{index}", "gpu", {"index": index}, {}) for index in range(count)]


def journal_entries(tmp_path: Path, event: str) -> list[Object]:
    lines = (tmp_path / "journal.jsonl").read_text().splitlines()
    return [note for note in map(json.loads, lines) if note["event"] == event]

"""The command lines of the measured drivers."""

import sys
from pathlib import Path

import yaml

from testbed.bench.measured_drivers import DriverEnvironment, example_driver, fake_driver, upstream_driver


def environment(folder: Path) -> DriverEnvironment:
    return DriverEnvironment(
        folder, folder, folder, "https://a", folder / "token", folder / "ca", folder / "kubeconfig", "bench"
    )


def test_the_hardware_file_of_the_fake_driver_has_the_changed_devices_at_the_end(tmp_path: Path) -> None:
    argv, _ = fake_driver().command(environment(tmp_path), 1000, 1)
    groups = yaml.safe_load((tmp_path / "hardware.yaml").read_text())["spec"]["devices"]

    assert argv[:3] == [sys.executable, "-m", "fake_driver"]
    assert [(each["count"], each["attributes"]["model"]) for each in groups] == [
        (999, "LATEST-GPU-MODEL"),
        (1, "OTHER-GPU-MODEL"),
    ]


def test_peers_get_the_node_the_number_of_devices_and_the_kubeconfig(tmp_path: Path) -> None:
    for made in (example_driver(Path("/x"), "1"), upstream_driver(Path("/x"), "1")):
        argv, _ = made.command(environment(tmp_path), 128, 0)

        assert {"--node-name=bench", "--num-devices=128", f"--kubeconfig={tmp_path}/kubeconfig"} <= set(argv)

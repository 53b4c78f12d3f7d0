"""The local provider beyond the contract of all providers (test_provider_contract.py)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from testbed import process
from testbed.bringup import Testbed
from testbed.waiting import Budget, NotYet, eventually

SOON = Budget("two lines", 30, "a program starts and prints")


def test_two_nodes_are_ready(testbed: Testbed) -> None:
    assert [node["metadata"]["name"] for node in testbed.kube.list("v1", "Node")] == ["node-1", "node-2"]


def test_a_kubelet_may_not_change_another_node(testbed: Testbed, kubectl: Any) -> None:
    kubeconfig = testbed.folder / "cluster/pki/kubelet-node-1.kubeconfig"
    result = process.run(
        [kubectl.program, f"--kubeconfig={kubeconfig}", "label", "node", "node-2", "stolen=true"], check=False
    )

    assert not result.ok
    assert "forbidden" in result.stderr.lower()


def test_nothing_listens_on_the_hosts_other_addresses(testbed: Testbed) -> None:
    """On this host only the nodes' proxy listens, on the testbed's link; everything else listens in other namespaces."""
    settings = testbed.cluster.settings  # type: ignore[attr-defined]  # an attribute of this provider only
    pids = {str(part.process.pid) for part in testbed.cluster.components() if part.process}
    listening = process.run(["ss", "-Hltnp"]).stdout.splitlines()
    addresses = [line.split()[3] for line in listening if pids & set(re.findall(r"pid=(\d+)", line))]

    assert addresses == [f"{settings.addresses.host}:{settings.egress_port}"]


def test_files_written_on_a_node_stay_on_the_node(testbed: Testbed) -> None:
    one, two = testbed.cluster.nodes()
    one.run(
        "sh",
        "-c",
        "mkdir -p /opt/vendor /etc/cdi /usr/local/etc/vendor && echo x | tee /opt/vendor/f /etc/cdi/f /usr/local/etc/vendor/f",
    )

    assert not two.run("ls", "/opt/vendor", check=False).ok
    assert not Path("/opt/vendor").exists()
    assert not Path("/usr/local/etc/vendor").exists()


def test_a_node_does_not_share_the_hosts_devices_settings_and_cdi_files(testbed: Testbed) -> None:
    one, two = testbed.cluster.nodes()
    one.run("sh", "-c", "mknod /dev/vendor0 c 1 3 && touch /etc/cdi/gpu.json && test -c /dev/null && test -c /dev/ptmx")

    assert not two.run("ls", "/dev/vendor0", check=False).ok
    assert not Path("/dev/vendor0").exists()
    assert one.run("cat", "/proc/sys/kernel/panic_on_oops").stdout == "1\n"


HARDWARE = (
    "for each in /sys/bus/pci/devices /sys/block /sys/class/block /sys/dev /dev/block; do ls -A $each; done 2>/dev/null"
)


def test_only_privileged_containers_see_pci_devices_and_disks_of_the_host(testbed: Testbed, kubectl: Any) -> None:
    kubectl.run_pod("ordinary", "sleep 600")
    kubectl.run_pod("privileged", "sleep 600", is_privileged=True)

    assert kubectl("exec", "ordinary", "--", "sh", "-c", f"{HARDWARE}; cat /proc/partitions", check=False).stdout == ""
    assert "lo" in kubectl("exec", "ordinary", "--", "ls", "/sys/class/net").stdout
    assert kubectl("exec", "ordinary", "--", "ls", "/sys/devices/system/cpu/cpu0").ok
    assert kubectl("exec", "privileged", "--", "sh", "-c", HARDWARE, check=False).stdout
    assert kubectl("exec", "privileged", "--", "find", "/dev", "-type", "b").stdout == ""
    opened = kubectl("exec", "privileged", "--", "sh", "-c", "mknod /disk b 7 0 && head -c 0 /disk", check=False)
    assert "Operation not permitted" in opened.stderr


def test_a_file_is_copied_to_a_node_with_its_permissions(testbed: Testbed, tmp_path: Path) -> None:
    cluster: Any = testbed.cluster
    (tmp_path / "program").write_text("echo hi")
    (tmp_path / "program").chmod(0o750)
    cluster.copy_to_node("node-2", tmp_path / "program", "/opt/a b/program")
    node = cluster.node("node-2")
    assert node.run("stat", "-c", "%a", "/opt/a b/program").stdout == "750\n"
    assert node.run("cat", "/opt/a b/program").stdout == "echo hi"


def test_a_process_runs_on_a_node_without_an_image(testbed: Testbed, tmp_path: Path) -> None:
    cluster: Any = testbed.cluster
    started = cluster.start_process(
        "node-1", ["sh", "-c", "hostname; echo $WORD; sleep 600"], log=tmp_path / "log", env={"WORD": "hi"}
    )

    def two_lines() -> str:
        text = (tmp_path / "log").read_text()
        if text.count("\n") < 2:
            raise NotYet(text)
        return text

    assert eventually(two_lines, "two lines", SOON) == "node-1\nhi\n"
    process.kill(started)

"""The files of nodes, and the records that another process loads."""

from pathlib import Path

from testbed.process import ProcessId
from testbed.providers.base import Artifacts, ClusterSpec
from testbed.providers.local.addresses import Addresses
from testbed.providers.local.components import ClusterSettings
from testbed.providers.local.credentials import write_credentials
from testbed.providers.local.host import Host
from testbed.providers.local.layout import (
    ClusterRecord,
    Layout,
    host_file,
    load_process_id,
    load_process_ids,
    save_process_id,
    write_node,
)
from testbed.providers.local.provider import LocalProvider


def test_a_node_gets_all_its_files_and_others_cannot_read_its_secrets(tmp_path: Path) -> None:
    programs = {name: Path("/programs") / name for name in LocalProvider().programs()}
    layout = Layout(tmp_path / "cluster")
    layout.make()
    settings = ClusterSettings(
        "dev",
        ClusterSpec("1.37.1"),
        Artifacts(programs),
        Addresses(140),
        Host(True, True, 0, 1, True, True, (6, 1), ()),
        layout.pki,
        layout.etcd,
    )
    write_credentials(layout.pki, settings.addresses, {"node-1": settings.addresses.node(1)})

    layout.container_spec.write_text("{}")

    folder = write_node(layout, settings, "node-1", 1)

    own = folder / "files/etc/dra-testbed"
    assert {path.name for path in own.iterdir()} == {
        "ca.crt",
        "kubelet.crt",
        "kubelet.key",
        "kubelet.kubeconfig",
        "kubelet.json",
        "kube-proxy.json",
        "kube-proxy.kubeconfig",
    }
    assert (folder / "files/etc/resolv.conf").read_text() == f"nameserver {settings.addresses.resolver}\n"
    assert (folder / "files/etc/containerd/containers.json").read_text() == "{}"
    assert "localhost" in (folder / "files/etc/hosts").read_text()
    secrets = [
        *layout.pki.glob("*.key"),
        *layout.pki.glob("*.kubeconfig"),
        own / "kubelet.key",
        own / "kubelet.kubeconfig",
        own / "kube-proxy.kubeconfig",
    ]
    assert [path.name for path in secrets if path.stat().st_mode & 0o077] == []
    assert layout.folder.stat().st_mode & 0o077 == 0


def test_a_linked_file_of_the_host_is_copied_into_a_node(tmp_path: Path) -> None:
    (tmp_path / "run-hosts").write_text("10.0.0.1 mirror\n")
    (tmp_path / "hosts").symlink_to(tmp_path / "run-hosts")

    assert host_file(tmp_path / "hosts", "127.0.0.1 localhost\n") == "10.0.0.1 mirror\n"


def test_a_node_gets_a_default_for_a_file_that_a_minimal_host_lacks(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")

    assert host_file(tmp_path / "hosts", "127.0.0.1 localhost\n") == "127.0.0.1 localhost\n"
    assert host_file(tmp_path / "dangling", "") == ""


def test_a_cluster_record_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    ClusterRecord(tmp_path / "cluster.json", 140, ("node-1",), "1.37.1").save()

    found = ClusterRecord.load(tmp_path / "cluster.json")

    assert found is not None
    assert (found.octet, found.nodes, found.kubernetes) == (140, ("node-1",), "1.37.1")


def test_there_is_no_cluster_record_before_the_first_save(tmp_path: Path) -> None:
    assert ClusterRecord.load(tmp_path / "cluster.json") is None


def test_a_process_id_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    save_process_id(tmp_path, "etcd", ProcessId(7, 8))

    assert load_process_id(tmp_path, "etcd") == ProcessId(7, 8)
    assert load_process_ids(tmp_path) == {"etcd": ProcessId(7, 8)}


def test_an_incomplete_process_file_is_ignored(tmp_path: Path) -> None:
    save_process_id(tmp_path, "etcd", ProcessId(7, 8))
    (tmp_path / "pids/etcd").write_text("7")

    assert load_process_id(tmp_path, "etcd") is None

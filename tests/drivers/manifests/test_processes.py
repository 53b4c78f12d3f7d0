"""A driver that is a program: the objects that run it on each node, with its variables."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from testbed import process
from testbed.bringup.resolved_config import check_needs
from testbed.bringup.steps.made_cluster import MadeClusterProcedure
from testbed.drivers.install import manifests
from testbed.drivers.manifests.processes import _START
from testbed.errors import UsageError
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.providers import provider

_CLASS = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: acme.example}}"


def _driver(folder: Path, **section: object) -> DriverFile:
    (folder / "plugin").touch(0o755)
    (folder / "class.yaml").write_text(_CLASS)
    content = {
        "apiVersion": "dra-testbed/v1alpha1",
        "kind": "DriverFile",
        "metadata": {"name": "acme"},
        "spec": {
            "driver": "acme.example",
            "devices": {"classes": ["acme.example"]},
            "install": {"process": {"command": ["./plugin"], **section}, "manifests": ["class.yaml"]},
            "nodes": {"labels": {"acme": "yes"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]},
            "probe": {"env": "^ACME_(?P<name>.*)="},
        },
    }
    (folder / "driver.yaml").write_text(yaml.safe_dump(content))
    return load_driver_file(folder / "driver.yaml")


def _objects(driver_file: DriverFile) -> dict[str, Any]:
    return {each["kind"]: each for each in manifests(driver_file)}


def _container(driver_file: DriverFile) -> Any:
    return _objects(driver_file)["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]


def test_a_pod_on_each_node_of_the_driver_starts_the_program_in_the_namespaces_of_the_node(tmp_path: Path) -> None:
    driver_file = _driver(tmp_path)
    found = _objects(driver_file)
    assert list(found) == ["Namespace", "ServiceAccount", "DeviceClass", "ClusterRoleBinding", "DaemonSet"]
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    assert (pod["hostPID"], pod["hostNetwork"], pod["nodeSelector"]) == (True, True, {"acme": "yes"})
    assert pod["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    key, _, value = driver_file.pods.selector.partition("=")
    assert found["DaemonSet"]["spec"]["template"]["metadata"]["labels"] == {key: value}
    assert pod["containers"][0]["command"][-1] == str(tmp_path / "plugin")


def test_command_and_environment_have_variables(tmp_path: Path) -> None:
    made = _container(
        _driver(
            tmp_path,
            command=["/usr/bin/plugin", "--node={{ node }}", "--config", "{{ kubeconfig }}", "$(HOME)"],
            environment={"NAME": "{{ driver_name }}", "POD": "{{ pod_uid }}"},
        )
    )
    arguments = ["/usr/bin/plugin", "--node=$(NODE_NAME)", "--config", "/run/dra-testbed/acme.example/kubeconfig"]
    assert made["command"][4:] == [*arguments, "$$(HOME)"]
    values = {each["name"]: each.get("value") for each in made["env"]}
    assert (values["NAME"], values["POD"]) == ("acme.example", "$(POD_UID)")
    assert values["KUBECONFIG"] == "/run/dra-testbed/acme.example/kubeconfig"


def test_an_unknown_variable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"spec\.install\.process: 'nodes' is undefined(.|\n)*node, pod_uid"):
        _container(_driver(tmp_path, environment={"NODE": "{{ nodes }}"}))


def test_the_program_gets_a_kubeconfig_with_the_credentials_of_its_pod(tmp_path: Path) -> None:
    account = "var/lib/kubelet/pods/uid-1/volumes/kubernetes.io~projected/kube-api-access-x"
    (tmp_path / account).mkdir(parents=True)
    (tmp_path / "nsenter").write_text('#!/bin/sh\nshift 4\nexec "$@"\n')
    (tmp_path / "nsenter").chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "POD_UID": "uid-1",
        "KUBECONFIG": "/run/acme/kubeconfig",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    script = _START.replace("/proc/1/root", str(tmp_path))
    done = process.run(["sh", "-c", script, "sh", "echo", "a b"], env=environment)
    assert done.stdout == "a b\n"
    found = yaml.safe_load((tmp_path / "run/acme/kubeconfig").read_text())
    cluster = {"server": "https://10.0.0.1:443", "certificate-authority": f"/{account}/ca.crt"}
    assert found["clusters"] == [{"name": "testbed", "cluster": cluster}]
    assert found["users"][0]["user"] == {"tokenFile": f"/{account}/token"}


def test_the_program_and_its_files_are_copied_to_each_node(tmp_path: Path) -> None:
    (tmp_path / "settings").touch()
    copied = []
    cluster = SimpleNamespace(
        nodes=lambda: [SimpleNamespace(name="node-1"), SimpleNamespace(name="node-2")],
        copy_to_node=lambda node, source, target: copied.append((node, source.name, target)),
        start_process=lambda *_: None,
    )
    resolved = SimpleNamespace(drivers=[_driver(tmp_path, files={"/etc/acme": "settings"})])
    procedure: Any = provider("local").dispatch(maker=MadeClusterProcedure, finder=lambda _: None)
    procedure.copy_files(SimpleNamespace(cluster=cluster, resolved=resolved))
    program = str(tmp_path / "plugin")
    assert copied == [
        (node, *file) for node in ("node-1", "node-2") for file in (("settings", "/etc/acme"), ("plugin", program))
    ]


@pytest.mark.parametrize("name", ["kind", "existing"])
def test_only_nodes_with_the_files_of_this_host_run_programs(tmp_path: Path, name: str) -> None:
    check_needs("local", [_driver(tmp_path)])
    with pytest.raises(UsageError, match=r"spec\.install\.process: driver acme runs as a process") as refused:
        check_needs(name, [_driver(tmp_path)])
    assert "--provider local" in refused.value.hint


def test_a_process_has_the_rights_of_an_administrator_and_none_of_its_own(tmp_path: Path) -> None:
    assert "rights" not in _driver(tmp_path).given

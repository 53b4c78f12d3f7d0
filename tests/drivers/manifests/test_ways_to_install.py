"""Drivers are installed from a kustomization, a chart and unchanged manifests. helm is a script that prints what helm would."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.binaries import lock_for, minors
from testbed.drivers import install, uninstall
from testbed.drivers.install import manifests
from testbed.drivers.manifests import tools
from testbed.errors import TestbedError, UsageError
from testbed.kube.ownership import Owner
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.waiting import set_patience
from tests.fakes.kube import FakeKube

OWNER = Owner("mine", "0123456789ab", "here", pid=7)
Script = Callable[[str, str], Path]


def _driver(folder: Path, way: str, **more: object) -> DriverFile:
    content = {
        "apiVersion": "dra-testbed/v1alpha1",
        "kind": "DriverFile",
        "metadata": {"name": "acme"},
        "spec": {
            "driver": "acme.example",
            "devices": {"classes": ["acme.example"]},
            "install": {**yaml.safe_load(way), **more},
            "pods": {"namespace": "acme-system", "selector": "app=acme", "container": "plugin"},
            "probe": {"command": ["env"], "lines": "(?P<name>x)"},
        },
    }
    (folder / "driver.yaml").write_text(yaml.safe_dump(content))
    return load_driver_file(folder / "driver.yaml")


def _manifest(kind: str, name: str, namespace: str = "", **hooks: str) -> str:
    annotations = {f"helm.sh/{key.replace('_', '-')}": value for key, value in hooks.items()}
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "annotations": annotations}
    return yaml.safe_dump({"apiVersion": "v1", "kind": kind, "metadata": metadata})


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Return a function that writes a shell script to the only folder on PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def put(name: str, body: str) -> Path:
        file = tmp_path / "bin" / name
        file.write_text(f"#!/bin/sh\n{textwrap.dedent(body)}")
        file.chmod(0o755)
        return file

    return put


@pytest.fixture
def chart(tmp_path: Path, script: Script) -> Callable[..., Path]:
    """Return a function that makes helm print these manifests, and the file with helm's arguments."""

    def make(*printed: str) -> Path:
        (tmp_path / "chart").mkdir()
        (tmp_path / "values.yaml").write_text("a: 1\n")
        (tmp_path / "printed").write_text("---\n".join(printed))
        script("helm", f'printf "%s\\n" "$@" > {tmp_path}/arguments\n/bin/cat {tmp_path}/printed\n')
        return tmp_path / "arguments"

    return make


def _identities(objects: list[Any]) -> list[tuple[str, str, str]]:
    return [(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace", "")) for each in objects]


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
def test_a_kustomization_is_built_and_installed(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base/cm.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
    (tmp_path / "base/kustomization.yaml").write_text(
        "namePrefix: acme-\nnamespace: acme-system\nresources: [cm.yaml]\n"
    )

    driver_file = _driver(tmp_path, "{kustomize: base}")

    assert _identities(manifests(driver_file)) == [("ConfigMap", "acme-settings", "acme-system")]


def test_manifests_are_installed_beside_a_kustomization(tmp_path: Path, script: Script) -> None:
    """A class for a driver whose vendor ships none, or a DaemonSet that makes devices."""
    script("kustomize", "echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}'\n")
    (tmp_path / "extra.yaml").write_text(_manifest("ConfigMap", "extra"))
    found = manifests(_driver(tmp_path, "{kustomize: ., manifests: [extra.yaml]}"))
    assert _identities(found) == [("ConfigMap", "extra", ""), ("ConfigMap", "c", "")]


def test_kustomize_is_preferred_to_kubectl(tmp_path: Path, script: Script) -> None:
    script("kubectl", "exit 1\n")
    script("kustomize", 'test "$1" = build && echo "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"\n')

    assert _identities(manifests(_driver(tmp_path, "{kustomize: .}"))) == [("ConfigMap", "c", "")]


def test_the_error_of_a_wrong_kustomization_is_shown(tmp_path: Path, script: Script) -> None:
    script("kustomize", "echo 'Error: missing Resource metadata' >&2; exit 1\n")

    with pytest.raises(
        UsageError, match=r"kustomization .* cannot be rendered: kustomize build: Error: missing Resource"
    ):
        manifests(_driver(tmp_path, "{kustomize: .}"))


def test_a_missing_program_is_named_with_the_command_that_fetches_it(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "chart").mkdir()

    with pytest.raises(TestbedError, match="helm is neither on PATH nor in the cache") as missing:
        manifests(_driver(tmp_path, "{chart: {path: chart}}"))
    assert missing.value.hint == "dra-testbed binaries fetch helm"


def test_a_program_that_a_driver_file_needs_is_fetched_before_there_is_a_cluster(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tools, "ensure", lambda _, names, **how: asked.append(names))

    tools.fetch_missing([_driver(tmp_path, "{chart: {path: .}}"), _driver(tmp_path, "{kustomize: .}")])
    script("helm", "")
    tools.fetch_missing([_driver(tmp_path, "{chart: {path: .}}")])

    assert sorted(map(str, asked)) == ["['helm']", "['kubectl']"]


def test_a_chart_is_rendered_as_a_release_in_the_drivers_namespace(tmp_path: Path, chart: Callable[..., Path]) -> None:
    arguments = chart(_manifest("ConfigMap", "c"), _manifest("ClusterRole", "r"), _manifest("Secret", "s", "other"))
    driver_file = _driver(tmp_path, "{chart: {path: chart, values: values.yaml}}")

    assert _identities(manifests(driver_file)) == [
        ("ConfigMap", "c", "acme-system"),
        ("ClusterRole", "r", ""),
        ("Secret", "s", "other"),
    ]
    given = arguments.read_text().split("\n")
    assert given[:3] == ["template", "acme", str(tmp_path / "chart")]
    assert {"--include-crds", "--skip-tests", "--namespace", "acme-system", str(tmp_path / "values.yaml")} <= set(given)


_TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  release: {{ .Release.Name }} in {{ .Release.Namespace }}
  value: {{ .Values.mode }}
  served: {{ .Capabilities.APIVersions.Has "resource.k8s.io/v1/DeviceClass" | quote }}
  kubernetes: {{ .Capabilities.KubeVersion.Version }}
---
apiVersion: v1
kind: Pod
metadata: {name: tests, annotations: {helm.sh/hook: test}}
"""


@pytest.mark.skipif(not shutil.which("helm"), reason="needs helm")
def test_a_chart_is_rendered_by_helm_itself(tmp_path: Path) -> None:
    (tmp_path / "chart/templates").mkdir(parents=True)
    (tmp_path / "chart/crds").mkdir()
    (tmp_path / "chart/Chart.yaml").write_text(
        "{apiVersion: v2, name: acme-driver, version: 1.0.0, kubeVersion: '>=1.33.0-0'}"
    )
    (tmp_path / "chart/values.yaml").write_text("mode: default")
    (tmp_path / "values.yaml").write_text("mode: mine")
    (tmp_path / "chart/templates/all.yaml").write_text(_TEMPLATE)
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "pools"},
    }
    (tmp_path / "chart/crds/pools.yaml").write_text(yaml.safe_dump({**definition, "spec": {"versions": []}}))
    driver_file = _driver(tmp_path, "{chart: {path: chart, values: values.yaml}}")

    (crd, settings) = manifests(driver_file)

    assert crd["kind"] == "CustomResourceDefinition"
    assert settings["metadata"]["namespace"] == "acme-system"
    assert {key: settings["data"][key] for key in ("release", "value", "served")} == {
        "release": "acme in acme-system", "value": "mine", "served": "true",
    }  # fmt: skip


def test_the_error_of_a_wrong_chart_is_shown(tmp_path: Path, script: Script) -> None:
    script("helm", "echo 'Error: found in Chart.yaml, but missing in charts/ directory: common' >&2; exit 1\n")

    with pytest.raises(
        UsageError, match=r"chart .* cannot be rendered: helm template: Error: found in Chart\.yaml, but missing"
    ):
        manifests(_driver(tmp_path, "{chart: {path: .}}"))


def test_a_chart_is_rendered_for_the_version_of_the_cluster(tmp_path: Path, chart: Callable[..., Path]) -> None:
    arguments = chart(_manifest("ConfigMap", "c"))
    driver_file = _driver(tmp_path, "{chart: {path: chart}}")

    manifests(driver_file, kubernetes="1.34.2")
    assert "--kube-version\n1.34.2\n" in arguments.read_text()
    manifests(driver_file)
    assert f"--kube-version\n{lock_for(minors()[0]).kubernetes}\n" in arguments.read_text()
    kube: Any = FakeKube()
    install(kube, driver_file, OWNER)
    assert "--kube-version\n1.37.0\n" in arguments.read_text()  # that of the fake


def test_hooks_of_a_chart_are_ordered_and_those_that_installing_does_not_run_are_left_out(
    tmp_path: Path, chart: Callable[..., Path]
) -> None:
    chart(
        _manifest("Job", "after", hook="post-install"),
        _manifest("ConfigMap", "c"),
        _manifest("Job", "late", hook="pre-install,pre-upgrade", hook_weight="5"),
        _manifest("Job", "early", hook="pre-install", hook_weight="-5"),
        _manifest("CustomResourceDefinition", "d"),
        _manifest("Job", "never", hook="pre-delete"),
    )
    driver_file = _driver(tmp_path, "{chart: {path: chart}}")

    assert [name for _, name, _ in _identities(manifests(driver_file))] == ["d", "early", "late", "c", "after"]


def test_an_unchanged_upstream_manifest_is_installed_and_each_change_is_reported(tmp_path: Path) -> None:
    (tmp_path / "install.yaml").write_text(
        """
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: DaemonSet
  metadata: {name: plugin, namespace: acme-system}
  spec:
    template:
      spec:
        containers: [{name: plugin, image: "registry.example/acme/driver:v3", imagePullPolicy: Always}]
"""
    )
    kube: Any = FakeKube()
    said: list[str] = []
    loaded = ["localhost/driver:1", "localhost/other:1"]

    install(kube, _driver(tmp_path, "{manifests: [install.yaml]}"), OWNER, loaded=loaded, report=said.append)

    assert [key[:1] for key in kube.objects] == [("Namespace",), ("DaemonSet",)]
    (container,) = kube.objects["DaemonSet", "acme-system", "plugin"]["spec"]["template"]["spec"]["containers"]
    assert container == {"name": "plugin", "image": "localhost/driver:1", "imagePullPolicy": "IfNotPresent"}
    plugin = "container plugin of DaemonSet plugin"
    assert said == [
        f"{plugin}: image registry.example/acme/driver:v3 is localhost/driver:1, which is loaded into the nodes",
        f"{plugin}: imagePullPolicy Always is IfNotPresent",
        "the loaded image localhost/other:1 is used by no container",
        "namespace acme-system does not exist and is created",
    ]


def test_a_namespace_that_installing_created_is_deleted_with_the_driver_and_an_existing_one_stays(
    tmp_path: Path,
) -> None:
    (tmp_path / "m.yaml").write_text(
        _manifest("ConfigMap", "c", "acme-system") + "---\n" + _manifest("Secret", "s", "theirs")
    )
    driver_file = _driver(tmp_path, "{manifests: [m.yaml]}")
    kube: Any = FakeKube()
    kube.put("Namespace", "theirs")

    install(kube, driver_file, OWNER)
    assert "acme-system" in [name for kind, _, name in kube.objects if kind == "Namespace"]
    uninstall(kube, driver_file, OWNER)

    assert [name for kind, _, name in kube.objects if kind == "Namespace"] == ["theirs"]


def test_a_kind_that_a_manifest_defines_is_awaited_before_its_objects_are_applied(tmp_path: Path) -> None:
    class Slow(FakeKube):
        def resource(self, api_version: str, kind: str) -> None:
            asked.append(f"{api_version} {kind}")
            if len(asked) < 3:
                raise UsageError(f"the API server has no {kind}")

    asked: list[str] = []
    spec = {"group": "acme.example", "names": {"kind": "Pool"}, "versions": [{"name": "v1", "served": True}]}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "p"},
    }
    pool = "{apiVersion: acme.example/v1, kind: Pool, metadata: {name: a}}"
    (tmp_path / "m.yaml").write_text(pool + "\n---\n" + yaml.safe_dump({**definition, "spec": spec}))
    kube: Any = Slow()
    set_patience(1.0)  # the answer changes

    install(kube, _driver(tmp_path, "{manifests: [m.yaml]}"), OWNER)

    kinds = [kind for kind, _, _ in kube.objects]
    assert kinds.index("CustomResourceDefinition") < kinds.index("Pool")
    assert asked[:3] == ["acme.example/v1 Pool"] * 3


def test_the_pods_of_the_driver_get_the_pull_secret(tmp_path: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "acme-system"},
        "spec": {"containers": []},
    }
    other = {**pod, "metadata": {"name": "o", "namespace": "other"}}
    (tmp_path / "m.yaml").write_text(yaml.safe_dump_all([pod, other]))
    driver_file = _driver(tmp_path, "{manifests: [m.yaml], pullSecret: regcred}")
    kube: Any = FakeKube()

    with pytest.raises(UsageError, match="there is no Secret regcred in namespace acme-system"):
        install(kube, driver_file, OWNER)
    assert not kube.objects
    kube.put("Secret", "regcred", "acme-system")
    install(kube, driver_file, OWNER)

    assert kube.objects["Pod", "acme-system", "p"]["spec"]["imagePullSecrets"] == [{"name": "regcred"}]
    assert "imagePullSecrets" not in kube.objects["Pod", "other", "o"]["spec"]

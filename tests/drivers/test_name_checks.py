"""Names in the driver file must exist in the cluster once the driver is ready; otherwise the file is wrong, not the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fake_driver.hardware.__main__ import slices
from fake_driver.hardware.hardware_file import read
from testbed import folders
from testbed.drivers import companions, name_checks
from testbed.drivers.name_checks import refuse_wrong_names
from testbed.errors import ApiError, UsageError, WaitTimeout
from testbed.models.driver.devices import Examples
from testbed.models.driver.probe import Probe
from testbed.models.driver_file import DriverFile, load_driver_file
from tests.fakes import cluster
from tests.fakes.driver_files import with_values

FILE = load_driver_file(cluster.driver_path())
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def _kube() -> Any:
    """Return a cluster with the driver on all nodes, and another pod in its namespace."""
    kube = cluster.make().kube
    for node in cluster.NODES:
        _pod(kube, f"driver-{node}", "fake-gpu-driver", {"nodeName": node, "containers": [{"name": "driver"}]})
    _pod(kube, "other", "metrics", {"containers": [{"name": "exporter"}]})
    return kube


def _pod(kube: Any, name: str, app: str, spec: Any) -> None:
    kube.put("Pod", name, FILE.pods.namespace, spec=spec, status=READY, metadata={"labels": {"app": app}})


def _file(section: str = "", **changed: Any) -> DriverFile:
    """Return the driver file with other values in its spec, or in a section of it."""
    return with_values(FILE, section, **changed)


def _refusal(kube: Any, driver_file: DriverFile) -> str:
    with pytest.raises(UsageError) as refused:
        refuse_wrong_names(kube, driver_file)
    return str(refused.value)


def test_a_matching_driver_file_is_accepted() -> None:
    refuse_wrong_names(_kube(), FILE)
    refuse_wrong_names(_kube(), _file("devices.identity", attribute="gpu.dra-testbed.example/uuid"))


@pytest.mark.parametrize(
    ("driver_file", "message"),
    [
        (
            _file("devices", classes=("gpu.dra-testbed.exmple",)),
            "spec.devices.classes[0]: the cluster has no DeviceClass gpu.dra-testbed.exmple; did you mean gpu.dra-testbed.example",
        ),
        (
            _file("optional.taints", device_class="taint.gpu.dra-testbed.example"),
            "spec.optional.taints.class: the cluster has no DeviceClass taint.gpu.dra-testbed.example; did you mean taints.gpu.",
        ),
        (
            _file("devices.identity", attribute="uid"),
            "spec.devices.identity.attribute: no device has an attribute uid; did you mean uuid?",
        ),
        (
            _file("pods", container="plugin"),
            "spec.pods.container: no pod of the driver has a container plugin; known: driver",
        ),
        (
            _file("pods", selector="app=fake-gpu-drivr"),
            "spec.pods.selector: no pod in dra-testbed-driver matches app=fake-gpu-drivr; did you mean app=fake-gpu-driver?",
        ),
        (
            _file("pods", namespace="drivers"),
            "spec.pods.namespace: no pod in drivers matches app=fake-gpu-driver, but pods in dra-testbed-driver do",
        ),
    ],
)
def test_a_name_that_does_not_exist_is_reported_with_its_key(driver_file: DriverFile, message: str) -> None:
    assert message in _refusal(_kube(), driver_file)


@pytest.mark.parametrize(
    ("section", "key", "field", "wrong", "near"),
    [
        ("devices.examples", "attribute", "attribute", "modell", "model"),
        ("devices.examples", "capacity", "capacity", "memori", "memory"),
        ("devices.examples", "match", "match_attribute", "modle", "model"),
        ("optional.capacity", "name", "capacity", "gpu.dra-testbed.example/memery", "memory"),
    ],
)
def test_examples_that_no_device_has_are_reported_with_a_near_match(
    section: str, key: str, field: str, wrong: str, near: str
) -> None:
    message = _refusal(_kube(), _file(section, **{field: wrong}))
    assert f"spec.{section}.{key}: no device has a" in message
    assert f"{wrong}; did you mean {near}?" in message


def test_examples_without_a_near_match_are_mistakes_only_for_real_hardware() -> None:
    file = _file("devices.examples", attribute="colour", capacity="bandwidth", match_attribute="pcieRoot")
    refuse_wrong_names(_kube(), file)
    theirs = file.model_copy(update={"spec": file.spec.model_copy(update={"install": None})})
    message = _refusal(_kube(), theirs)
    assert "spec.devices.examples.attribute: no device has an attribute colour; known: model, uuid" in message
    assert "spec.devices.examples.capacity: no device has a capacity bandwidth; known: memory" in message
    assert "spec.devices.examples.match: no device has an attribute pcieRoot; known: model, uuid" in message
    refuse_wrong_names(_kube(), with_values(theirs, "devices", examples=Examples()))


def test_an_attribute_of_other_devices_is_reported_with_a_near_match() -> None:
    message = _refusal(_kube(), _file("devices", others={"modell": ("a*",)}))
    assert "spec.devices.others: no device has an attribute modell; did you mean model?" in message
    refuse_wrong_names(_kube(), _file("devices", others={"purpose": ("*",)}, examples=Examples()))


def test_the_domain_does_not_count_for_a_near_match() -> None:
    file = _file("devices.examples", match_attribute="resource.kubernetes.io/pcieRoot")
    refuse_wrong_names(_with_attribute("resource.kubernetes.io/numaNode"), file)
    message = _refusal(_with_attribute("resource.kubernetes.io/pcieRoots"), file)
    assert "did you mean resource.kubernetes.io/pcieRoots?" in message


def _with_attribute(name: str) -> Any:
    kube = _kube()
    for slice_ in (each for key, each in kube.objects.items() if key[0] == "ResourceSlice"):
        for device in slice_["spec"]["devices"]:
            device["attributes"][name] = {"string": "a"}
    return kube


@pytest.mark.parametrize(
    "hardware", sorted((folders.data("manifests") / "hardware").glob("*.yaml")), ids=lambda file: file.stem
)
@pytest.mark.parametrize(("driver", "kind"), [("fake-gpu", "!nic"), ("fake-nic", "nic")])
def test_the_shipped_driver_files_match_all_shipped_hardware(hardware: Path, driver: str, kind: str) -> None:
    file = load_driver_file(folders.data("manifests") / f"drivers/{driver}.yaml")
    kube = _kube()
    for slice_ in slices(read(hardware), cluster.NODES, file.driver, (kind,)):
        kube.objects["ResourceSlice", "default", slice_["metadata"]["name"]] = slice_
    assert list(name_checks._attribute_problems(kube, file)) == []


def _with_selector(expression: str, *, slices: bool = True) -> Any:
    kube = _kube()
    kube.put("DeviceClass", FILE.device_class, spec={"selectors": [{"cel": {"expression": expression}}]})
    if not slices:
        for key in [key for key in kube.objects if key[0] == "ResourceSlice"]:
            del kube.objects[key]
        kube.put("ResourceSlice", "nic", spec={**cluster.slice_spec("node-1", 1), "driver": "nic.dra-testbed.example"})
    return kube


def test_a_driver_name_that_the_class_does_not_select_is_a_mistake() -> None:
    kube = _with_selector("device.driver == 'gpu.dra-testbed.example' && device.attributes['x'].y == \"z\"")
    message = _refusal(kube, _file(driver="gpuu.dra-testbed.example"))
    assert "spec.driver: no ResourceSlice has the driver gpuu.dra-testbed.example" in message
    assert "selects devices of gpu.dra-testbed.example; did you mean gpu.dra-testbed.example?" in message


@pytest.mark.parametrize("expression", ["device.driver == 'gpu.dra-testbed.example'", "true"])
def test_a_driver_that_publishes_nothing_is_left_to_the_tests(expression: str) -> None:
    refuse_wrong_names(_with_selector(expression, slices=False), FILE)


@pytest.mark.usefixtures("_installed")
def test_installing_with_a_driver_name_that_the_class_does_not_select_fails() -> None:
    kube = _with_selector("device.driver == 'gpu.dra-testbed.example'")
    with pytest.raises(UsageError, match=r"spec\.driver: no ResourceSlice has the driver gpuu"):
        companions.install_all(kube, [_file(driver="gpuu.dra-testbed.example")], cluster.OWNER)


def test_all_wrong_names_are_reported() -> None:
    spec = with_values(_file("devices.identity", attribute="uid"), "devices", classes=("nik.example",)).spec
    message = _refusal(_kube(), FILE.model_copy(update={"spec": spec}))
    assert "spec.devices.classes" in message
    assert "spec.devices.identity.attribute" in message


def test_one_device_with_the_attribute_and_one_pod_with_the_container_are_enough() -> None:
    kube = _kube()
    for node in cluster.NODES:
        for device in kube.objects["ResourceSlice", "default", f"slice-{node}"]["spec"]["devices"][1:]:
            device["attributes"] = {"model": {"string": "x"}}
    _pod(kube, "controller", "fake-gpu-driver", {"containers": [{"name": "controller"}]})
    refuse_wrong_names(kube, FILE)


@pytest.mark.parametrize("device", [[], [{"name": "bare"}]], ids=["no device", "no attribute"])
def test_devices_without_attributes_are_left_to_the_tests(device: list[Any]) -> None:
    kube = _kube()
    for node in cluster.NODES:
        kube.objects["ResourceSlice", "default", f"slice-{node}"]["spec"]["devices"] = device
    refuse_wrong_names(kube, FILE)


def test_a_driver_that_does_not_run_as_a_pod_is_accepted() -> None:
    kube: Any = cluster.make().kube
    _pod(kube, "other", "metrics", {"containers": [{"name": "exporter"}]})
    refuse_wrong_names(kube, with_values(_file(install=None), "devices", examples=Examples()))


def test_a_selector_that_no_pod_of_an_installed_driver_has_is_reported_with_the_labels_there() -> None:
    message = _refusal(_kube(), _file("pods", selector="k8s-app=plugin"))
    assert (
        "spec.pods.selector: no pod in dra-testbed-driver matches k8s-app=plugin; known: app=fake-gpu-driver, app="
        in message
    )


def test_nothing_is_reported_without_permission_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = _kube()
    monkeypatch.setattr(kube, "list", _raising(403))
    refuse_wrong_names(kube, _file("devices", classes=("gone",)))
    monkeypatch.setattr(kube, "list", _raising(500))
    with pytest.raises(ApiError):
        refuse_wrong_names(kube, FILE)


def _raising(status: int) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        raise ApiError("GET", status, "?", "no")

    return refuse


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(companions, "install", lambda *_, **__: None)


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("changed", [{"namespace": "drivers"}, {"selector": "app=fake-gpu-drivr"}, {"container": "x"}])
def test_installing_fails_with_the_mistakes_in_the_file(changed: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=f"spec.pods.{next(iter(changed))}"):
        companions.install_all(_kube(), [_file("pods", **changed)], cluster.OWNER)


@pytest.mark.usefixtures("_installed")
def test_a_driver_that_does_not_become_ready_is_not_a_mistake_in_the_file() -> None:
    kube = _kube()
    kube.objects["Pod", FILE.pods.namespace, "driver-node-1"]["status"] = {"phase": "Pending"}
    with pytest.raises(WaitTimeout):
        companions.install_all(kube, [FILE], cluster.OWNER)


@pytest.mark.parametrize(("scope", "is_refused"), [("node", False), ("cluster", True)])
def test_an_identity_that_two_nodes_have_is_refused_with_the_devices(scope: str, is_refused: bool) -> None:
    kube = _with_attribute("same")
    for node in cluster.NODES:
        for index, device in enumerate(kube.objects["ResourceSlice", "default", f"slice-{node}"]["spec"]["devices"]):
            device["attributes"]["address"] = {"string": f"0000:0{index}"}
    file = _file("devices.identity", attribute="address", scope=scope)
    if not is_refused:
        refuse_wrong_names(kube, file)
        return
    assert "spec.devices.identity: gpu-0 of node-1 and gpu-0 of node-2 have the same address 0000:00" in _refusal(
        kube, file
    )
    same = _file("devices.identity", attribute="same", scope="node")
    assert "gpu-0 of node-1 and gpu-0 of node-2 and gpu-1 of node-1" in _refusal(kube, same)


def test_two_devices_of_a_node_with_one_name_are_refused_if_the_probe_shows_names() -> None:
    kube = _kube()
    pool = {"name": "more", "generation": 1, "resourceSliceCount": 1}
    kube.put("ResourceSlice", "slice-more", spec={**cluster.slice_spec("node-1", 1), "pool": pool})
    shows_names = Probe.model_validate_json('{"env": "^GPU=(?P<name>.*)$"}')
    refusal = _refusal(kube, _file(probe=shows_names))
    assert (
        "spec.probe: gpu-0 of node-1 and gpu-0 of node-1, pool more have the same name gpu-0, but spec.probe.env shows names"
        in refusal
    )

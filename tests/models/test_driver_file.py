"""Reading driver files, and the messages for mistakes in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from testbed import folders
from testbed.errors import UsageError
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.models.features import DERIVED, EXEMPTIBLE, declaring_key

FULL = r"""
apiVersion: dra-testbed/v1alpha1
kind: DriverFile
metadata: {name: fake-gpu}
spec:
  driver: gpu.dra-testbed.example
  deviceClass: gpu.dra-testbed.example
  install:
    manifests: [manifests/one.yaml]
    builtInImage: true
    images: [image.tar]
    variables: {replicas: 2}
  pods: {namespace: dra-testbed-driver, selector: app=fake-gpu-driver, container: driver}
  nodes: {selector: {gpu: "true"}}
  probe:
    command: [env]
    matches: '^GPU_DEVICE_\w+_UUID=(?P<id>\S+)$'
    identityAttribute: uuid
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/one.yaml").write_text("")
    (tmp_path / "image.tar").write_text("")
    return tmp_path


def load(folder: Path, text: str) -> DriverFile:
    (folder / "driver.yaml").write_text(text)
    return load_driver_file(folder / "driver.yaml")


def refusal(folder: Path, old: str, new: str) -> str:
    assert old in FULL
    with pytest.raises(UsageError) as refused:
        load(folder, FULL.replace(old, new))
    return str(refused.value)


@pytest.mark.parametrize(("more", "own"), [("", True), (", ownSlices: false", False)])
def test_nodes_have_their_own_slices_by_default(folder: Path, more: str, own: bool) -> None:
    found = load(folder, FULL.replace('nodes: {selector: {gpu: "true"}', f'nodes: {{selector: {{gpu: "true"}}{more}'))

    assert found.nodes.own_slices is own


def test_tolerations_are_read(folder: Path) -> None:
    found = load(folder, FULL.replace('gpu: "true"}', 'gpu: "true"}, tolerations: [{key: gpu, effect: NoSchedule}]'))
    (toleration,) = found.nodes.tolerations
    assert (toleration.key, toleration.operator, toleration.effect) == ("gpu", "Equal", "NoSchedule")


def test_a_full_file_is_read_with_paths_relative_to_it(folder: Path) -> None:
    found = load(folder, FULL)

    assert (found.name, found.driver, found.device_class) == (
        "fake-gpu",
        "gpu.dra-testbed.example",
        "gpu.dra-testbed.example",
    )
    assert found.install is not None
    assert found.install.manifests == (folder / "manifests/one.yaml",)
    assert found.install.images == (folder / "image.tar",)
    assert found.install.built_in_image
    assert found.install.variables == {"replicas": 2}
    assert (found.pods.namespace, found.pods.selector, found.pods.container) == (
        "dra-testbed-driver",
        "app=fake-gpu-driver",
        "driver",
    )
    assert found.nodes.selector == {"gpu": "true"}
    assert found.probe.identity_attribute == "uuid"


def test_an_installed_driver_needs_no_install_section_and_runs_on_all_nodes(folder: Path) -> None:
    content = yaml.safe_load(FULL)
    del content["spec"]["install"], content["spec"]["nodes"]

    found = load(folder, yaml.safe_dump(content))

    assert found.install is None
    assert found.nodes.selector == {}


def test_features_are_declared_or_derived_from_other_keys(folder: Path) -> None:
    assert load(folder, FULL).features == {"identity", *EXEMPTIBLE}
    section = (
        "  features: [device-status]\n  examples: {matchAttribute: resource.kubernetes.io/pcieRoot, capacity: memory}\n"
    )
    file = load(folder, FULL + section)
    assert file.features - EXEMPTIBLE.keys() == {
        "identity",
        "device-status",
        "example-match-attribute",
        "example-capacity",
    }
    assert (file.examples.attribute, file.examples.capacity) == ("", "memory")


@pytest.mark.parametrize("name", DERIVED)
def test_a_feature_that_another_key_declares_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match=rf"spec\.features\[0\]: is {name}, which {declaring_key(name)} declares"):
        load(folder, f"{FULL}  features: [{name}]\n")


@pytest.mark.parametrize(
    ("word", "hint"),
    [("device-statuss", "did you mean device-status?"), ("gpu", "known: device-status, health, metadata")],
)
def test_an_unknown_feature_is_refused(folder: Path, word: str, hint: str) -> None:
    message = rf"spec\.features\[0\]: is '{word}', which is not a feature; {re.escape(hint)}"
    with pytest.raises(UsageError, match=message):
        load(folder, f"{FULL}  features: [{word}]\n")


def test_a_driver_has_the_features_that_it_is_not_exempt_from(folder: Path) -> None:
    file = load(folder, f"{FULL}  exempt: [shared-claims, per-container]\n")
    assert file.features == {"identity", "admin-access", "cdi"}


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("shared-claim", "did you mean shared-claims?"),
        ("health", "known: admin-access, cdi, per-container, shared-claims"),
    ],
)
def test_an_unknown_exemption_is_refused(folder: Path, word: str, hint: str) -> None:
    message = rf"spec\.exempt\[0\]: is '{word}', which is not a possible exemption; {re.escape(hint)}"
    with pytest.raises(UsageError, match=message):
        load(folder, f"{FULL}  exempt: [{word}]\n")


@pytest.mark.parametrize("name", EXEMPTIBLE)
def test_a_feature_that_every_driver_has_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match=rf"spec\.features\[0\]: is {name}, which every driver has"):
        load(folder, f"{FULL}  features: [{name}]\n")


def test_every_key_that_declares_a_feature_exists() -> None:
    schema = DriverFile.model_json_schema()
    places = [place.partition(".")[::2] for place in DERIVED.values()]
    sections = {
        "probe": "Probe",
        "sharing": "Sharing",
        "classes": "Classes",
        "examples": "Examples",
        "configuration": "Configuration",
    }
    assert {name for name, _ in places} <= set(schema["$defs"]["DriverSpec"]["properties"])
    assert all(inner in schema["$defs"][sections[name]]["properties"] for name, inner in places if inner)


def test_a_class_declares_its_feature(folder: Path) -> None:
    section = (
        "  classes: {taints: t.example.com, capacity: c.example.com}\n"
        "  sharing: {capacity: memory, half: 8Gi, tooMuch: 10Gi}\n  otherDevices: {type: [mig]}\n"
    )
    file = load(folder, FULL + section)
    assert file.features - EXEMPTIBLE.keys() == {"identity", "taints", "capacity", "sharing-limits"}
    assert (file.classes.taints, file.classes.binding) == ("t.example.com", None)
    assert file.other_devices == {"type": ("mig",)}


def test_a_class_of_shared_devices_needs_the_sharing_section(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"only one of classes\.capacity and sharing, but needs both"):
        load(folder, FULL + "  classes: {capacity: c.example.com}\n")


@pytest.mark.parametrize("key", ["half", "uneven", "rounded", "tooMuch"])
def test_an_invalid_quantity_is_reported_with_its_line(folder: Path, key: str) -> None:
    amounts = {"half": "8Gi", "uneven": "1.5e3", "rounded": ".5", "tooMuch": "100m"}
    section = "  classes: {capacity: c.example.com}\n  sharing:\n    capacity: memory\n"
    lines = [f"    {name}: '{value}'\n" for name, value in amounts.items()]
    assert load(folder, FULL + section + "".join(lines)).sharing
    wrong = [f"    {name}: {'banana' if name == key else repr(value)}\n" for name, value in amounts.items()]
    with pytest.raises(UsageError, match=rf"driver.yaml:\d+: spec.sharing.{key}: is 'banana', but must be a quantity"):
        load(folder, FULL + section + "".join(wrong))


def test_the_probe_finds_every_device_in_the_output(folder: Path) -> None:
    output = "HOME=/\nGPU_DEVICE_gpu_1_UUID=b\nGPU_DEVICE_gpu_0_UUID=a\nXGPU_DEVICE_gpu_0_UUID=c\n"

    assert load(folder, FULL).probe.ids(output) == ("a", "b")


def test_a_probe_that_shows_names_needs_no_attribute(folder: Path) -> None:
    by_name = FULL.replace("?P<id>", "?P<name>").replace("    identityAttribute: uuid\n", "")
    found = load(folder, by_name)

    assert found.probe.shows_names
    assert found.probe.ids("GPU_DEVICE_gpu_1_UUID=gpu-1\n") == ("gpu-1",)
    assert "identity" not in found.features
    assert "identity" in load(folder, FULL).features


def test_a_driver_file_survives_json(folder: Path) -> None:
    found = load(folder, FULL)

    assert DriverFile.model_validate_json(found.model_dump_json(by_alias=True)) == found


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("driver: gpu.dra-testbed.example", "driver: GPU", "spec.driver: is 'GPU', but must be a DNS subdomain"),
        (
            "driver: gpu.dra-testbed.example",
            f"driver: {'a' * 64}",
            "spec.driver: has 64 characters, but must have at most 63",
        ),
        ("manifests/one.yaml", "gone.yaml", "spec.install.manifests[0]: no such file"),
        ("image.tar", "gone.tar", "spec.install.images[0]: no such file"),
        ("[manifests/one.yaml]", "[]", "spec.install.manifests: is [], but must not be empty"),
        ("replicas: 2", "image: mine", "spec.install: sets the variable image, which builtInImage sets too"),
        (
            "builtInImage: true",
            "builtInImage: 'true'",
            "spec.install.builtInImage: is the string 'true', but must be true or false",
        ),
        ("app=fake-gpu-driver", '"app fake"', "spec.pods.selector: is 'app fake', but must be a label selector"),
        ("?P<id>", "?P<uuid>", "spec.probe.matches: needs a group named id or name"),
        ("    identityAttribute: uuid\n", "", "spec.probe: has a group id in matches, but no identityAttribute"),
        ("(?P<id>", "(?P<name>.)(?P<id>", "spec.probe.matches: has both a group id and a group name"),
        ("?P<id>", "?P<id", "spec.probe.matches: is not a valid regular expression"),
        ("command: [env]", "command: []", "spec.probe.command: is [], but must not be empty"),
        ("command: [env]", "command: env", "spec.probe.command: is the string 'env', but must be a list"),
        (
            'gpu: "true"',
            "gpu: true",
            'spec.nodes.selector.gpu: is true, but must be a string: write it in quotes, "true"',
        ),
        (
            'selector: {gpu: "true"}',
            "tolerations: [{value: present}]",
            "spec.nodes.tolerations[0]: has no key, which requires operator: Exists",
        ),
        (
            'selector: {gpu: "true"}',
            "tolerations: [{key: gpu, operator: Exists, value: present}]",
            "spec.nodes.tolerations[0]: has a value, which operator: Exists does not allow",
        ),
        (
            'selector: {gpu: "true"}',
            "tolerations: [{key: gpu, operator: Exists, tolerationSeconds: 3}]",
            "spec.nodes.tolerations[0]: has tolerationSeconds, which requires effect: NoExecute",
        ),
        (
            'selector: {gpu: "true"}',
            "tolerations: [{key: gpu, efect: NoSchedule}]",
            "spec.nodes.tolerations[0].efect: is not a known key; did you mean effect?",
        ),
        ("container:", "contaner:", "spec.pods.contaner: is not a known key; did you mean container?"),
        ("kind: DriverFile", "kind: Testbed", "kind: is 'Testbed', but must be 'DriverFile'"),
    ],
)
def test_a_mistake_is_reported_with_its_key(folder: Path, old: str, new: str, what: str) -> None:
    assert what in refusal(folder, old, new)


@pytest.mark.parametrize(
    "file", sorted((folders.data("manifests") / "drivers").glob("*.yaml")), ids=lambda file: file.stem
)
def test_the_shipped_driver_files_are_valid(file: Path) -> None:
    assert load_driver_file(file).name == file.stem


CONFIGURED = (
    FULL
    + """
  configuration:
    command: [env]
    one: {parameters: {speed: 1}, shows: '^SPEED=1$'}
    other: {parameters: {speed: 2}, shows: '^SPEED=2$'}
    invalid: {parameters: {speed: much}, field: speed}
"""
)


def test_a_configuration_section_declares_the_feature(folder: Path) -> None:
    found = load(folder, CONFIGURED)

    assert "configuration" in found.features
    assert "configuration" not in load(folder, FULL).features
    assert found.configuration
    assert found.configuration.shown("PATH=/bin\nSPEED=2\n") == {"other"}
    assert found.configuration.shown("SPEED=11\n") == frozenset()
    assert found.configuration.invalid.parameters == {"speed": "much"}
    assert found.configuration.precedence is None


@pytest.mark.parametrize(("declared", "is_judged"), [("claim", True), ("class", True), ("none", False)])
def test_only_a_declared_precedence_of_configuration_is_judged(folder: Path, declared: str, is_judged: bool) -> None:
    found = load(folder, CONFIGURED + f"    precedence: {declared}\n")

    assert "configuration" in found.features
    assert ("configuration-precedence" in found.features) is is_judged
    assert "configuration-precedence" not in load(folder, CONFIGURED).features


def test_an_unknown_precedence_is_an_error(folder: Path) -> None:
    with pytest.raises(UsageError, match="precedence"):
        load(folder, CONFIGURED + "    precedence: node\n")


def test_an_invalid_regular_expression_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="is not a valid regular expression"):
        load(folder, CONFIGURED.replace("^SPEED=2$", "^SPEED=(2$"))

"""Reading driver files, and the messages for mistakes in them."""

from __future__ import annotations

import re
import typing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from testbed import folders
from testbed.errors import UsageError
from testbed.models.driver_file import DriverFile, DriverSpec, load_driver_file
from testbed.models.features import DERIVED, EXEMPTIBLE, declaring_key

FULL = r"""
apiVersion: dra-testbed/v1alpha1
kind: DriverFile
metadata: {name: fake-gpu}
spec:
  driver: gpu.dra-testbed.example
  install:
    manifests: [manifests/one.yaml]
    builtInImage: true
    images: [image.tar]
    variables: {replicas: 2}
  pods: {namespace: dra-testbed-driver, selector: app=fake-gpu-driver, container: driver}
  nodes: {selector: {gpu: "true"}}
  devices:
    classes: [gpu.dra-testbed.example]
    identity: {attribute: uuid, scope: cluster}
  probe:
    command: [env]
    lines: '^GPU_DEVICE_\w+_UUID=(?P<id>\S+)$'
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


@pytest.mark.parametrize(
    ("more", "given"),
    [
        ("", {"local", "few", "unshared"}),
        ("    belongTo: network\n", {"few", "unshared"}),
        ("    perNode: 33\n", {"local", "unshared"}),
        (
            "  optional: {capacity: {class: gpu.dra-testbed.example, name: memory, half: 8Gi}}\n",
            {"local", "few"},
        ),
    ],
)
def test_the_file_declares_what_tests_may_assume_about_devices(folder: Path, more: str, given: set[str]) -> None:
    identity = "    identity: {attribute: uuid, scope: cluster}\n"
    assert load(folder, FULL.replace(identity, identity + more)).given == given


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
    assert found.identity_attribute == "uuid"


def test_an_installed_driver_needs_no_install_section_and_runs_on_all_nodes(folder: Path) -> None:
    content = yaml.safe_load(FULL)
    del content["spec"]["install"], content["spec"]["nodes"]

    found = load(folder, yaml.safe_dump(content))

    assert found.install is None
    assert found.nodes.selector == {}


def test_features_are_declared_or_derived_from_other_keys(folder: Path) -> None:
    assert load(folder, FULL).features == {"identity", *EXEMPTIBLE}
    section = "  features: [device-status]\n"
    examples = "    examples: {match: resource.kubernetes.io/pcieRoot, capacity: memory}\n"
    file = load(folder, FULL.replace("  probe:", examples + "  probe:") + section)
    assert file.features - EXEMPTIBLE.keys() == {
        "identity",
        "device-status",
        "example-match-attribute",
        "example-capacity",
    }
    assert (file.examples.attribute, file.examples.capacity) == ("", "memory")


@pytest.mark.parametrize("name", DERIVED)
def test_a_feature_that_another_key_declares_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(
        UsageError, match=rf"spec\.features\[0\]: is {name}, which {re.escape(declaring_key(name))} declares"
    ):
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
    for path in DERIVED.values():
        model: Any = DriverSpec
        for key in path.split("."):
            field = next(each for name, each in model.model_fields.items() if (each.alias or name) == key)
            model = next(
                (part for part in (field.annotation, *typing.get_args(field.annotation)) if _is_model(part)), None
            )


def _is_model(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def test_a_class_declares_its_feature(folder: Path) -> None:
    section = (
        "  optional:\n    taints: {class: t.example.com}\n"
        "    capacity: {class: c.example.com, name: memory, half: 8Gi, tooMuch: 10Gi}\n"
    )
    file = load(folder, FULL.replace("  probe:", "    others: {type: [mig]}\n  probe:") + section)
    assert file.features - EXEMPTIBLE.keys() == {"identity", "taints", "capacity", "sharing-limits"}
    assert (file.classes.taints, file.classes.binding) == ("t.example.com", None)
    assert file.other_devices == {"type": ("mig",)}


def test_a_class_of_shared_devices_needs_amounts(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"spec\.optional\.capacity\.half: is missing"):
        load(folder, FULL + "  optional: {capacity: {class: c.example.com}}\n")


def test_an_amount_that_is_rounded_needs_the_result(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"only one of uneven and rounded, but needs both or neither"):
        load(folder, FULL + "  optional: {capacity: {class: c.example.com, name: memory, half: 8Gi, uneven: 3Gi}}\n")


@pytest.mark.parametrize("key", ["half", "uneven", "rounded", "tooMuch"])
def test_an_invalid_quantity_is_reported_with_its_line(folder: Path, key: str) -> None:
    amounts = {"half": "8Gi", "uneven": "1.5e3", "rounded": ".5", "tooMuch": "100m"}
    section = "  optional:\n    capacity:\n      class: c.example.com\n      name: memory\n"
    lines = [f"      {name}: '{value}'\n" for name, value in amounts.items()]
    assert load(folder, FULL + section + "".join(lines)).sharing
    wrong = [f"      {name}: {'banana' if name == key else repr(value)}\n" for name, value in amounts.items()]
    with pytest.raises(
        UsageError, match=rf"driver.yaml:\d+: spec.optional.capacity.{key}: is 'banana', but must be a quantity"
    ):
        load(folder, FULL + section + "".join(wrong))


def test_the_probe_finds_every_device_in_the_output(folder: Path) -> None:
    output = "HOME=/\nGPU_DEVICE_gpu_1_UUID=b\nGPU_DEVICE_gpu_0_UUID=a\nXGPU_DEVICE_gpu_0_UUID=c\n"

    assert load(folder, FULL).probe.ids(output) == ("a", "b")


def test_a_probe_that_shows_names_needs_no_attribute(folder: Path) -> None:
    by_name = FULL.replace("?P<id>", "?P<name>").replace("    identity: {attribute: uuid, scope: cluster}\n", "")
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
        ("?P<id>", "?P<uuid>", "spec.probe.lines: needs a group named id or name"),
        (
            "    identity: {attribute: uuid, scope: cluster}\n",
            "",
            "spec: has a group id in probe, but no devices.identity to compare it with",
        ),
        ("    command: [env]\n", "", "spec.probe: has none of env, deviceNode, mount,"),
        ("    command: [env]\n", "    cpuset: true\n", "spec.probe: has only one of command and lines"),
        (
            "    command: [env]\n",
            "    command: [env]\n    cpuset: true\n",
            "spec.probe: has cpuset and command of env,",
        ),
        ("    lines:", "    env:", "spec.probe: has env and command of env,"),
        ("(?P<id>", "(?P<name>.)(?P<id>", "spec.probe.lines: has both a group id and a group name"),
        ("?P<id>", "?P<id", "spec.probe.lines: is not a valid regular expression"),
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
    assert found.configuration.invalid
    assert found.configuration.invalid.parameters == {"speed": "much"}


def test_an_invalid_regular_expression_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="is not a valid regular expression"):
        load(folder, CONFIGURED.replace("^SPEED=2$", "^SPEED=(2$"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "  devices:",
            "  deviceClass: a.example\n  devices:",
            "14: spec.deviceClass: is not a known key; it moved to spec.devices.classes",
        ),
        (
            "  devices:",
            "  classes: {taints: t.example}\n  devices:",
            "spec.classes: is not a known key; it moved to spec.optional, as",
        ),
        (
            "  devices:",
            "  sharing: {capacity: a}\n  devices:",
            "spec.sharing: is not a known key; it moved to spec.optional.capacity",
        ),
        (
            "  devices:",
            "  otherDevices: {a: [b]}\n  devices:",
            "spec.otherDevices: is not a known key; it moved to spec.devices.others",
        ),
        (
            "  devices:",
            "  examples: {}\n  devices:",
            "spec.examples: is not a known key; it moved to spec.devices.examples",
        ),
        ("  devices:\n", "  devices:\n    examples: {matchAttribute: a}\n", "it moved to spec.devices.examples.match"),
        ("    lines:", "    matches:", "spec.probe.matches: is not a known key; it moved to spec.probe.lines"),
        ("    lines:", "    identityAttribute: uuid\n    lines:", "it moved to spec.devices.identity.attribute"),
        (
            '"true"}}',
            '"true"}, ownSlices: false}',
            "spec.nodes.ownSlices: is not a known key; it moved to spec.devices.belongTo",
        ),
    ],
)
def test_a_key_that_moved_is_reported_with_its_line_and_its_new_place(
    folder: Path, old: str, new: str, message: str
) -> None:
    found = refusal(folder, old, new)
    assert message in found
    assert re.search(r"driver\.yaml:\d+: spec\.", found)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[manifests/one.yaml]",
            "[manifests/one.yaml]\n    previous: {manifests: [manifests]}",
            "spec.install.previous: is not supported",
        ),
        (
            "    manifests: [manifests/one.yaml]",
            "    process: {command: [plugin]}",
            "spec.install.process: is not supported by this version; use manifests",
        ),
        (
            "[gpu.dra-testbed.example]",
            "[gpu.dra-testbed.example, b.example]",
            "spec.devices.classes: is not supported by this version; use one class",
        ),
        ("    classes:", "    claim: {counts: all}\n    classes:", "spec.devices.claim.counts: is not supported"),
        ("    classes:", "    claim: {counts: [1, 2]}\n    classes:", "spec.devices.claim.counts: is not supported"),
        (
            "    classes:",
            "    claim: {configuration: required}\n    classes:",
            "spec.devices.claim.configuration: is not supported",
        ),
        ("    classes:", "    claim: {with: [b.example]}\n    classes:", "spec.devices.claim.with: is not supported"),
        ("    command: [env]", "    image: a\n    command: [env]", "spec.probe.image: is not supported"),
        (
            "    command: [env]",
            "    without: {command: [a]}\n    command: [env]",
            "spec.probe.without: is not supported",
        ),
        ("  devices:", "  budgets: {prepareP99: 2s}\n  devices:", "spec.budgets: is not supported"),
    ],
)
def test_a_key_that_this_version_cannot_act_on_is_refused(folder: Path, old: str, new: str, message: str) -> None:
    found = refusal(folder, old, new)
    assert message in found
    assert re.search(r"driver\.yaml:\d+: spec\.", found)


@pytest.mark.parametrize(
    "kind",
    [
        "deviceNode: '/dev/a(?P<name>.)'",
        "mount: '/a/(?P<id>.)'",
        "networkInterface: '(?P<name>n.)'",
        "cpuset: true",
        "metadata: true",
    ],
)
def test_a_kind_of_probe_that_this_version_lacks_is_refused(folder: Path, kind: str) -> None:
    lines = next(line for line in FULL.splitlines() if "lines:" in line)
    key = kind.partition(":")[0]
    message = f"spec.probe.{key}: is not supported by this version; use command and lines, or env"
    assert message in refusal(folder, f"    command: [env]\n{lines}", f"    {kind}")


def test_a_probe_of_environment_variables_runs_env(folder: Path) -> None:
    lines = next(line for line in FULL.splitlines() if "lines:" in line)
    probe = load(folder, FULL.replace(f"    command: [env]\n{lines}", r"    env: '^GPU_(?P<id>\S+)='")).probe
    assert probe.argv == ("env",)
    assert probe.ids("PATH=/bin\nGPU_b=1\nGPU_a=1\n") == ("a", "b")


def test_a_folder_stands_for_the_manifests_in_it(folder: Path) -> None:
    for name in ("b.yml", "a.json", "notes.md"):
        (folder / "manifests" / name).write_text("")
    found = load(folder, FULL.replace("manifests/one.yaml", "manifests")).install
    assert found
    assert [each.name for each in found.manifests] == ["a.json", "b.yml", "one.yaml"]


def test_a_folder_without_manifests_is_refused(folder: Path) -> None:
    (folder / "empty").mkdir()
    assert "empty contains no file that ends with .yaml, .yml, .json" in refusal(folder, "manifests/one.yaml", "empty")


@pytest.mark.parametrize(
    ("install", "message"),
    [
        ("{images: [image.tar]}", "spec.install: has none of manifests, kustomize, chart, process, installed"),
        ("{installed: true, manifests: [manifests]}", "has manifests and installed of manifests,"),
        ("{installed: true, images: [image.tar]}", "has installed: true, so images has no effect"),
        ("{installed: true, builtInImage: true}", "has installed: true, so builtInImage has no effect"),
    ],
)
def test_a_driver_is_installed_in_one_way(folder: Path, install: str, message: str) -> None:
    content = yaml.safe_load(FULL)
    content["spec"]["install"] = yaml.safe_load(install)
    with pytest.raises(UsageError, match=re.escape(message)):
        load(folder, yaml.safe_dump(content))


def test_a_driver_that_is_installed_already_is_not_installed(folder: Path) -> None:
    content = yaml.safe_load(FULL)
    content["spec"]["install"] = {"installed": True}
    assert load(folder, yaml.safe_dump(content)).install is None


@pytest.mark.parametrize(("scope", "is_unique"), [("cluster", True), ("node", False)])
def test_only_an_identity_that_is_unique_in_the_cluster_declares_the_feature(
    folder: Path, scope: str, is_unique: bool
) -> None:
    file = load(folder, FULL.replace("scope: cluster", f"scope: {scope}"))
    assert file.identity_attribute == "uuid"
    assert ("identity" in file.features) is file.is_identity_unique is is_unique


def test_known_failures_are_read(folder: Path) -> None:
    known = "  known:\n  - {id: PREP-004, reason: pool is ignored, link: 'https://a.example/12', until: 2027-03-01}\n"
    (found,) = load(folder, FULL + known).known
    assert (found.id, found.reason, found.link, found.until) == (
        "PREP-004",
        "pool is ignored",
        "https://a.example/12",
        date(2027, 3, 1),
    )


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("{id: prep, reason: a}", "spec.known[0].id: is 'prep', but must match the pattern"),
        ("{id: PREP-004}", "spec.known[0].reason: is missing"),
        ("{id: PREP-004, reason: a, until: soon}", "spec.known[0].until: is 'soon'"),
        ("{id: PREP-004, reason: a}, {id: PREP-004, reason: b}", "spec: lists PREP-004 more than once in known"),
    ],
)
def test_a_wrong_known_failure_is_refused(folder: Path, entries: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        load(folder, FULL + f"  known: [{entries}]\n")


def test_a_configuration_that_no_container_shows_is_judged_by_its_refusal(folder: Path) -> None:
    found = load(folder, FULL + "  configuration: {invalid: {parameters: {speed: much}, field: speed}}\n")
    assert "invalid-configuration" in found.features
    assert "configuration" not in found.features


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{command: [env]}", "has no one and no other; command, one and other are judged only together"),
        ("{one: {parameters: {}, shows: a}}", "has no command and no other"),
        ("{}", "has neither one and other nor invalid"),
        ("{precedence: claim, invalid: {parameters: {}, field: a}}", "has a precedence, which requires command, one"),
    ],
)
def test_a_configuration_that_cannot_be_judged_is_refused(folder: Path, given: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        load(folder, FULL + f"  configuration: {given}\n")


@pytest.mark.parametrize(("declared", "is_judged"), [("claim", True), ("class", True), ("none", False)])
def test_only_a_declared_precedence_of_configuration_is_judged(folder: Path, declared: str, is_judged: bool) -> None:
    found = load(folder, CONFIGURED + f"    precedence: {declared}\n")
    assert "configuration" in found.features
    assert ("configuration-precedence" in found.features) is is_judged
    assert "configuration-precedence" not in load(folder, CONFIGURED).features


def test_version_and_needs_are_read(folder: Path) -> None:
    found = load(folder, FULL + "  version: '1.4.2'\n  needs: [nri]\n").spec
    assert (found.version, found.needs) == ("1.4.2", ("nri",))


def test_an_unknown_precedence_is_an_error(folder: Path) -> None:
    with pytest.raises(UsageError, match="precedence"):
        load(folder, CONFIGURED + "    precedence: node\n")

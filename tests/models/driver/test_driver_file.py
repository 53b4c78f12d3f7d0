"""Reading driver files, and the messages for mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed import folders
from testbed.models.driver_file import DriverFile, load_driver_file
from tests.models.driver.files import FULL, load, refusal


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


def test_a_driver_file_survives_json(folder: Path) -> None:
    found = load(folder, FULL)

    assert DriverFile.model_validate_json(found.model_dump_json(by_alias=True)) == found


DRIVERS = folders.data("manifests") / "drivers"


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
        ("?P<id>", "?P<uuid>", "spec.probe.lines: needs a group named id, name, set or count"),
        (
            "    identity: {attribute: uuid, scope: cluster}\n",
            "",
            "spec: has a group id in probe, but no devices.identity to compare it with",
        ),
        ("    command: [env]\n", "", "spec.probe: has none of env, deviceNode, mount,"),
        ("    command: [env]\n", "    cpuset: true\n", "spec.probe: has lines, which requires command"),
        (
            "    command: [env]\n",
            "    command: [env]\n    cpuset: true\n",
            "spec.probe: has cpuset and command of env,",
        ),
        ("    lines:", "    env:", "spec.probe: has env and command of env,"),
        (
            "    command: [env]",
            "    without: {cpuset: true, metadata: true}\n    command: [env]",
            "has cpuset and metadata of env,",
        ),
        (
            "    command: [env]",
            "    without: {env: '(?P<set>a'}\n    command: [env]",
            "spec.probe.without.env: is not a valid",
        ),
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
    "file",
    [file for place in (".", "shapes", "mutants") for file in sorted((DRIVERS / place).glob("*.yaml"))],
    ids=lambda file: file.stem,
)
def test_the_shipped_driver_files_are_valid(file: Path) -> None:
    assert load_driver_file(file).name == file.stem


def test_version_and_needs_are_read(folder: Path) -> None:
    found = load(folder, FULL + "  version: '1.4.2'\n  needs: [nri]\n").spec
    assert (found.version, found.needs) == ("1.4.2", ("nri",))

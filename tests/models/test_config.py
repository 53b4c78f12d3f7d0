"""The effective configuration from defaults, file and flags."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from pathlib import Path

import pytest
import yaml

from testbed import folders
from testbed.binaries import minors
from testbed.errors import UsageError
from testbed.models.config import (
    NEWEST,
    TestbedConfig,
    TestbedFile,
    TestbedSpec,
    config_from_record,
    config_to_record,
    effective,
    load_testbed_file,
)
from testbed.models.sections import PROVIDER_SECTIONS
from testbed.providers import PROVIDERS

HEAD = "apiVersion: dra-testbed/v1alpha1\nkind: Testbed\n"


def read(tmp_path: Path, text: str) -> TestbedFile:
    file = tmp_path / "testbed.yaml"
    file.write_text(HEAD + text)
    return load_testbed_file(file)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(UsageError) as refused:
        read(tmp_path, text)
    return str(refused.value)


def test_the_default_kubernetes_is_the_newest_locked_one() -> None:
    assert minors()[0] == NEWEST


def test_without_file_and_flags_the_defaults_apply_and_the_fake_gpu_driver_is_installed() -> None:
    config = effective(None, {})

    assert config == TestbedConfig(driver=config.driver)
    assert config.driver is not None
    assert config.driver.parts[-3:] == ("manifests", "drivers", "fake-gpu.yaml")


def test_the_file_overrides_the_defaults_and_flags_override_the_file(tmp_path: Path) -> None:
    file = read(tmp_path, "metadata: {name: mine}\nspec: {nodes: 3, kubernetes: '1.36', driver: none}")

    assert effective(file, {"nodes": 5, "kubernetes": None}) == TestbedConfig(name="mine", nodes=5, kubernetes="1.36")
    assert effective(file, {"name": "other"}).name == "other"


def test_maps_are_merged_and_flags_override_single_entries(tmp_path: Path) -> None:
    file = read(tmp_path, "spec: {featureGates: {A: true, B: true}, runtimeConfig: {x/v1: true, y/v1: 'false'}}")

    config = effective(file, {"feature_gates": {"B": False, "C": True}, "runtime_config": {}})

    assert config.feature_gates == {"A": True, "B": False, "C": True}
    assert config.runtime_config == {"x/v1": "true", "y/v1": "false"}


def test_paths_in_a_file_are_relative_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "driver.yaml").write_text("")
    (tmp_path / "bin").mkdir()
    file = read(tmp_path, "spec: {driver: driver.yaml, hardware: ./driver.yaml, binariesFrom: [bin, cache]}")

    config = effective(file, {})

    assert (config.driver, config.hardware) == (tmp_path / "driver.yaml", tmp_path / "driver.yaml")
    assert config.binaries_from == (str(tmp_path / "bin"), "cache")


def test_paths_in_flags_are_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "driver.yaml").write_text("")
    monkeypatch.chdir(tmp_path)

    assert effective(None, {"driver": "driver.yaml"}).driver == tmp_path / "driver.yaml"


@pytest.mark.parametrize("name", ["README.md", "good"])
@pytest.mark.parametrize("flag", ["driver", "hardware"])
def test_an_existing_file_needs_no_extension(
    name: str, flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)

    config = effective(None, {flag: name})

    assert getattr(config, flag) == tmp_path / name
    assert getattr(config_from_record(config_to_record(config)), flag) == tmp_path / name


def test_a_shipped_name_wins_over_a_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "h100").write_text("")
    monkeypatch.chdir(tmp_path)

    hardware = effective(None, {"hardware": "h100"}).hardware

    assert hardware is not None
    assert hardware.parent.name == "hardware"


@pytest.mark.parametrize("word", ["mine", "./mine", "mine/"])
def test_a_folder_is_not_a_driver_file(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match=f"--driver: {tmp_path}/mine is a folder, but must be a file"):
        effective(None, {"driver": word})


@pytest.mark.parametrize(
    ("spec", "near"), [("kubeconfig: x", "spec.existing.kubeconfig"), ("workload: x", "spec.images.workload")]
)
def test_a_key_outside_its_section_gets_a_suggestion(spec: str, near: str, tmp_path: Path) -> None:
    file = tmp_path / "testbed.yaml"
    file.write_text(f"{{apiVersion: dra-testbed/v1alpha1, kind: Testbed, spec: {{{spec}}}}}")

    with pytest.raises(UsageError, match=f"is not a known key; did you mean {near}[?]"):
        load_testbed_file(file)


def test_the_driver_can_be_none() -> None:
    assert effective(None, {"driver": "none"}).driver is None


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        ({"nodes": 0}, "--nodes: is 0, but must be 1 or more"),
        ({"nodes": 10000}, "--nodes: is 10000, but must be 64 or less"),
        ({"provider": "kinda"}, "--provider: is 'kinda'.*did you mean kind"),
        ({"kubernetes": "latest"}, r"--kubernetes: is 'latest', but must be a version such as 1\.37 or 1\.37\.1$"),
        ({"name": "../x"}, "--name is '../x', which is a path"),
        ({"name": ""}, "--name is '', but must not be empty"),
        ({"driver": "./gone.yaml"}, "--driver: no such file"),
        ({"driver": "/"}, "--driver: / is a folder, but must be a file"),
        ({"driver": "nope"}, "--driver: is 'nope', which is neither a file nor"),
        ({"hardware": "nope"}, "--hardware: is 'nope'"),
        ({"binaries_from": ["nowhere"]}, "--binaries-from: is 'nowhere', which is neither a folder nor one of cache"),
    ],
)
def test_invalid_flags_are_refused(flags: dict[str, object], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        effective(None, flags)


def test_a_version_that_yaml_reads_as_a_number_is_refused(tmp_path: Path) -> None:
    assert 'spec.kubernetes: is the number 1.30, but must be a string: write it in quotes, "1.30"' in refusal(
        tmp_path, "spec: {kubernetes: 1.30}"
    )


def test_a_leading_v_is_removed() -> None:
    assert effective(None, {"kubernetes": "v1.36.2"}).kubernetes == "1.36.2"


def test_all_problems_of_a_file_are_listed(tmp_path: Path) -> None:
    text = refusal(tmp_path, "metadata: {name: A/B}\nspec:\n  nodez: 3\n  provider: docker\n  nodes: 65\n")

    assert [line.split(": ")[1] for line in text.splitlines()[1:]] == [
        "metadata.name",
        "spec.nodez",
        "spec.provider",
        "spec.nodes",
    ]


def test_another_api_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "testbed.yaml"
    file.write_text("apiVersion: dra-testbed/v2\nkind: Testbed\n")

    with pytest.raises(UsageError, match="apiVersion: is 'dra-testbed/v2', but must be 'dra-testbed/v1alpha1'"):
        load_testbed_file(file)


def test_the_effective_configuration_is_a_valid_file_with_the_same_result(tmp_path: Path) -> None:
    (tmp_path / "driver.yaml").write_text("")
    flags = {
        "name": "mine", "nodes": 3, "driver": str(tmp_path / "driver.yaml"), "hardware": str(tmp_path / "driver.yaml"),
        "feature_gates": {"A": True}, "runtime_config": {"x/v1": "true"}, "binaries_from": ["cache"],
    }  # fmt: skip
    config = effective(None, flags)
    (tmp_path / "again.yaml").write_text(config.as_yaml())

    assert effective(load_testbed_file(tmp_path / "again.yaml"), {}) == config
    assert yaml.safe_load(config.as_yaml())["kind"] == "Testbed"


def test_a_record_keeps_the_configuration_even_if_its_files_are_deleted(tmp_path: Path) -> None:
    config = dataclasses.replace(effective(None, {}), driver=tmp_path / "gone.yaml", binaries_from=("/gone",))

    assert config_from_record(json.loads(json.dumps(config_to_record(config)))) == config


def test_the_configuration_is_immutable() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        effective(None, {}).nodes = 3  # type: ignore[misc]  # this is what is tested


def test_flags_set_keys_of_a_section_and_override_the_file(tmp_path: Path) -> None:
    file = read(tmp_path, "spec: {provider: kind, kind: {nodeImage: theirs, nodeLabels: {a: b}}}")

    config = effective(file, {"node_image": "mine"})

    assert (config.kind.node_image, config.kind.node_labels) == ("mine", {"a": "b"})
    assert config_from_record(json.loads(json.dumps(config_to_record(config)))) == config


def test_a_setting_of_another_provider_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nodeImage is a setting of provider kind, but the provider is local"):
        effective(None, {"node_image": "mine"})
    with pytest.raises(UsageError, match="--kubeconfig: no such file"):
        effective(None, {"provider": "existing", "kubeconfig": str(tmp_path / "gone")})


def test_given_names_the_settings_and_does_not_count_for_equality() -> None:
    config = effective(None, {"nodes": 2})

    assert config.given == {"nodes"}
    assert config == effective(None, {})


def test_a_file_may_name_all_providers_and_no_others() -> None:
    named = typing.get_args(typing.get_args(TestbedSpec.model_fields["provider"].annotation)[0])
    assert set(named) == set(PROVIDERS)
    assert set(PROVIDER_SECTIONS) <= set(PROVIDERS)


@pytest.mark.parametrize(
    "place", ["testbed/providers/__init__.py", "testbed/models/config.py", "testbed/cli/options.py"]
)
def test_every_list_of_providers_is_complete_and_named_in_the_contributing_guide(place: str) -> None:
    text = (folders.packages() / place).read_text()
    contributing = (folders.packages() / "CONTRIBUTING.md").read_text()
    assert [name for name in PROVIDERS if not re.search(rf"[\"|]{name}[\"|]", text)] == []
    assert f"`{place}`" in contributing.partition("## A new provider")[2].partition("\n## ")[0]

"""The configuration of a testbed: the file that users write (kind Testbed), and the effective configuration from defaults, file and flags.

`up` and `run` call `effective`; a testbed's record stores what `config_to_record` returns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema
from pydantic.alias_generators import to_camel

from testbed import folders
from testbed.errors import did_you_mean
from testbed.models.gates import GateInfo, check_gates, parse_gate, parse_runtime_config
from testbed.models.names import TestbedName, check_name
from testbed.models.sections import (
    SECTION_FLAGS,
    SECTIONS,
    ExistingSection,
    ImagesSection,
    KindSection,
    nest_section_flags,
    refuse_other_providers,
)
from testbed.models.strict import API_VERSION, Strict, check_flags, existing_file, load

__all__ = [
    "GateInfo",
    "TestbedConfig",
    "TestbedFile",
    "check_gates",
    "check_name",
    "config_from_record",
    "config_to_record",
    "effective",
    "load_testbed_file",
    "parse_gate",
    "parse_runtime_config",
]

NEWEST = "1.37"  # a test compares it with the lock files
DEFAULT_DRIVER = "fake-gpu"
NO_DRIVER = "none"
SOURCES = ("cache", "download", "build", "system")


def _shipped_or_file(folder: str) -> Callable[[str, ValidationInfo], str]:
    """Return a check for the name of a shipped file or the path of a user's file. The shipped file wins."""

    def check(value: str, info: ValidationInfo) -> str:
        if "/" in value or value.endswith((".yaml", ".yml")):
            return str(existing_file(Path(value), info))
        if value == NO_DRIVER or (_shipped(folder) / f"{value}.yaml").is_file():
            return value
        if info.context and (Path(info.context["folder"]) / value).exists():
            return str(existing_file(Path(value), info))
        known = [path.stem for path in _shipped(folder).glob("*.yaml")]
        hint = did_you_mean(value, known) or "is the file in another folder?"
        raise ValueError(f"is {value!r}, which is neither a file nor a name that dra-testbed ships; {hint}")

    return check


def _source(value: str, info: ValidationInfo) -> str:
    if value in SOURCES or info.context is None:
        return value
    found = (Path(info.context["folder"]) / Path(value).expanduser()).resolve()
    if not found.is_dir():
        raise ValueError(f"is {value!r}, which is neither a folder nor one of {', '.join(SOURCES)}")
    return str(found)


def _as_text(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _version(text: str) -> str:
    if not re.search(_VERSION, text):
        raise ValueError(f"is {text!r}, but must be a version such as {NEWEST} or {NEWEST}.1")
    return text.removeprefix("v")


_VERSION = r"^v?1\.\d{1,2}(\.\d{1,3})?$"
Version = Annotated[str, AfterValidator(_version), WithJsonSchema({"type": "string", "pattern": _VERSION})]
Switch = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "boolean"]})]


class TestbedSpec(Strict):
    """The settings of a testbed. TestbedConfig has the defaults."""

    __test__ = False

    provider: Literal["local", "kind", "existing"] | None = Field(None, description="Program that creates the cluster.")
    kubernetes: Version | None = Field(
        None, description='Kubernetes minor or patch version, in quotes: "1.37", "1.37.1".'
    )
    nodes: int | None = Field(None, ge=1, le=64, description="Number of worker nodes.")
    hardware: Annotated[str, AfterValidator(_shipped_or_file("hardware"))] | None = Field(
        None, description="Fake hardware of the fake drivers: the name of a shipped hardware file, or a path."
    )
    feature_gates: dict[str, bool] | None = Field(None, description="Kubernetes feature gates.")
    runtime_config: dict[str, Switch] | None = Field(
        None, description="API groups and versions that the API server serves or not, as for its --runtime-config."
    )
    driver: Annotated[str, AfterValidator(_shipped_or_file("drivers"))] | None = Field(
        None, description="Driver to install: the name of a shipped driver file, a path, or none."
    )
    kubelet: Version | None = Field(
        None, description="Another version for the kubelets, as in the middle of an upgrade."
    )
    images: ImagesSection | None = None
    kind: KindSection | None = None
    existing: ExistingSection | None = None
    binaries_from: list[Annotated[str, AfterValidator(_source)]] | None = Field(
        None, description="Sources of the Kubernetes programs, in order: folders, cache, download, build, system."
    )


class TestbedMetadata(Strict):
    """The metadata of a testbed."""

    __test__ = False

    name: TestbedName | None = None


class TestbedFile(Strict):
    """A file of kind Testbed."""

    __test__ = False

    api_version: Literal["dra-testbed/v1alpha1"]
    kind: Literal["Testbed"]
    metadata: TestbedMetadata = TestbedMetadata()
    spec: TestbedSpec = TestbedSpec()


@dataclass(frozen=True)
class TestbedConfig:
    """The effective configuration, with the defaults of all settings. `given` names the settings that file or flags set."""

    __test__ = False

    name: str = "default"
    provider: str = "local"
    kubernetes: str = NEWEST
    nodes: int = 2
    hardware: Path | None = None
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    runtime_config: Mapping[str, str] = field(default_factory=dict)
    driver: Path | None = None
    kubelet: str | None = None
    images: ImagesSection = field(default_factory=ImagesSection)
    kind: KindSection = field(default_factory=KindSection)
    existing: ExistingSection = field(default_factory=ExistingSection)
    binaries_from: tuple[str, ...] = ()
    given: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def provider_options(self) -> object:
        """Return the section of the chosen provider, or None if it has none."""
        return getattr(self, self.provider, None)

    def as_yaml(self) -> str:
        """Return the effective configuration as a file of kind Testbed."""
        return yaml.safe_dump(config_to_record(self), sort_keys=False)


def load_testbed_file(path: Path) -> TestbedFile:
    """Read a file of kind Testbed."""
    return load(path, TestbedFile)


def effective(file: TestbedFile | None, flags: Mapping[str, object]) -> TestbedConfig:
    """Return the effective configuration: defaults, overridden by the file, overridden by flags that are not None or empty.

    The keys of `flags` are the fields of TestbedConfig. Maps are merged; a flag's entry wins over the file's.
    """
    given = {key: value for key, value in flags.items() if value is not None and value not in ((), {}, [])}
    name = given.pop("name", None)
    by_flag = check_flags(
        {to_camel(key): value for key, value in nest_section_flags(given).items()}, TestbedSpec, SECTION_FLAGS
    )
    settings = _merge(_set_fields(file.spec) if file else {}, _set_fields(by_flag))
    refuse_other_providers(settings.get("provider", TestbedConfig.provider), settings)
    if name is not None:
        settings["name"] = check_name(str(name))
    elif file and file.metadata.name:
        settings["name"] = file.metadata.name
    return TestbedConfig(**_resolve(settings), given=frozenset(settings))


def config_to_record(config: TestbedConfig) -> dict[str, Any]:
    """Return the configuration as plain data: a document of kind Testbed, which `--config` accepts too."""
    excluded = {"name", "given", *SECTIONS}
    spec: dict[str, Any] = {
        to_camel(each.name): getattr(config, each.name) for each in fields(config) if each.name not in excluded
    }
    spec |= {
        name: getattr(config, name).model_dump(mode="json", by_alias=True, exclude_defaults=True) for name in SECTIONS
    }
    spec["driver"] = str(config.driver or NO_DRIVER)
    spec["binariesFrom"] = list(config.binaries_from)
    spec["hardware"] = str(config.hardware) if config.hardware else None
    spec["featureGates"], spec["runtimeConfig"] = dict(config.feature_gates), dict(config.runtime_config)
    plain = {key: value for key, value in spec.items() if value not in (None, {}, [])}
    return {"apiVersion": API_VERSION, "kind": "Testbed", "metadata": {"name": config.name}, "spec": plain}


def config_from_record(record: Mapping[str, Any]) -> TestbedConfig:
    """Return the configuration that `config_to_record` wrote. Its files need not exist any more."""
    return effective(TestbedFile.model_validate_json(json.dumps(record)), {})


def _set_fields(spec: TestbedSpec) -> dict[str, Any]:
    return {key: value for key, value in dict(spec).items() if value is not None}


def _merge(base: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    maps = [key for key in ("feature_gates", "runtime_config") if key in base and key in override]
    sections = [key for key in SECTIONS if key in base and key in override]
    merged: dict[str, Any] = {key: base[key] | override[key] for key in maps}
    merged |= {
        key: base[key].model_copy(
            update={each: getattr(override[key], each) for each in override[key].model_fields_set}
        )
        for key in sections
    }
    return base | override | merged


def _resolve(settings: dict[str, Any]) -> dict[str, Any]:
    driver = settings.get("driver", DEFAULT_DRIVER)
    resolved: dict[str, Any] = {"driver": None if driver == NO_DRIVER else _path("drivers", driver)}
    if "hardware" in settings:
        resolved["hardware"] = _path("hardware", settings["hardware"])
    if "binaries_from" in settings:
        resolved["binaries_from"] = tuple(settings["binaries_from"])
    return {**settings, **resolved}


def _path(folder: str, value: str) -> Path:
    return Path(value) if "/" in value else _shipped(folder) / f"{value}.yaml"


def _shipped(folder: str) -> Path:
    return folders.data("manifests") / folder

"""The sections of a Testbed file for one provider, and the one for images; `config` assembles them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from testbed.errors import UsageError
from testbed.models.strict import Strict, existing_file

ExistingFile = Annotated[Path, AfterValidator(existing_file)]
AbsolutePath = Annotated[str, Field(pattern=r"^/")]


class Allow(enum.StrEnum):
    """What a run may do to an existing cluster. Each level includes the ones before it."""

    READ_ONLY = "read-only"
    WORKLOADS = "workloads"
    DRIVER = "driver"
    RESTART = "restart"


class Mount(Strict):
    """A folder or file of the host that is mounted into every node."""

    host_path: AbsolutePath
    container_path: AbsolutePath
    read_only: bool = False


class KindSection(Strict):
    """Settings of provider kind."""

    node_image: str | None = Field(None, min_length=1, description="Image of the nodes. Default: kind's own.")
    patch: ExistingFile | None = Field(
        None, description="File of kind Cluster (kind.x-k8s.io) that is merged into ours."
    )
    mounts: tuple[Mount, ...] = Field((), description="Folders and files of the host that are mounted into every node.")
    node_labels: dict[str, str] = Field(default_factory=dict, description="Labels of the worker nodes.")
    registry_mirrors: dict[str, str] = Field(
        default_factory=dict, description="Mirror URLs by the host names of registries."
    )


class ExistingSection(Strict):
    """Settings of provider existing."""

    kubeconfig: ExistingFile | None = Field(
        None, description="Kubeconfig of the cluster. Default: found as kubectl does."
    )
    context: str | None = Field(None, min_length=1, description="Context of the kubeconfig. Default: the current one.")
    allow: Literal["read-only", "workloads", "driver", "restart"] = Field(
        "workloads",
        description="What a run may do. read-only: read; workloads: also create and delete its own objects; "
        "driver: also restart and update the driver, and act as its account; restart: also restart kubelets and container runtimes, "
        "and reboot nodes with rebootCommand.",
    )
    reboot_command: str | None = Field(
        None, min_length=1, description="Command that reboots a node. The node's name is added as the last argument."
    )


class ImagesSection(Strict):
    """Images that nodes pull, or have already, instead of those that the testbed builds and loads."""

    workload: str | None = Field(
        None, min_length=1, description="Image of test pods. It needs sh, sleep, env, cat and ls."
    )
    driver: str | None = Field(None, min_length=1, description="Image of the fake drivers.")


PROVIDER_SECTIONS = ("kind", "existing")
SECTIONS = (*PROVIDER_SECTIONS, "images")

# The flags that fill a section, with section and key.
SECTION_FLAGS: Mapping[str, tuple[str, str]] = {
    "node_image": ("kind", "nodeImage"),
    "kubeconfig": ("existing", "kubeconfig"),
    "context": ("existing", "context"),
    "allow": ("existing", "allow"),
    "reboot_command": ("existing", "rebootCommand"),
    "workload_image": ("images", "workload"),
    "driver_image": ("images", "driver"),
}


def nest_section_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags with those of each section nested under its name."""
    result: dict[str, Any] = {key: value for key, value in flags.items() if key not in SECTION_FLAGS}
    for key in flags.keys() & SECTION_FLAGS.keys():
        section, field = SECTION_FLAGS[key]
        result.setdefault(section, {})[field] = flags[key]
    return result


def refuse_other_providers(provider: str, given: Mapping[str, Any]) -> None:
    """Raise UsageError if a setting is for another provider: it would be ignored silently."""
    for section in PROVIDER_SECTIONS:
        if section in given and section != provider:
            keys = given[section].model_dump(by_alias=True, exclude_unset=True)
            raise UsageError(
                f"{', '.join(keys) or section} is a setting of provider {section}, but the provider is {provider}",
                hint=f"remove the setting, or add --provider {section}",
            )

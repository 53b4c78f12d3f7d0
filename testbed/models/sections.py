"""The parts of a Testbed file that belong to one provider, and the images that replace ours. `config` puts them together."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from testbed.errors import UsageError
from testbed.models.strict import Strict, existing_file

AFile = Annotated[Path, AfterValidator(existing_file)]
AbsolutePath = Annotated[str, Field(pattern=r"^/")]


class Allow(enum.StrEnum):
    """What may be done to a cluster that is not ours, each level with those before it."""

    READ_ONLY = "read-only"
    WORKLOADS = "workloads"
    RESTART = "restart"


class Mount(Strict):
    """A folder or file of the host that is seen in every node."""

    host_path: AbsolutePath
    container_path: AbsolutePath
    read_only: bool = False


class KindSection(Strict):
    """What only provider kind is told."""

    node_image: str | None = Field(None, min_length=1, description="the nodes' image; kind's own one if not given")
    patch: AFile | None = Field(None, description="a file of kind Cluster (kind.x-k8s.io), merged over ours")
    mounts: tuple[Mount, ...] = Field((), description="what of the host is seen in every node")
    node_labels: dict[str, str] = Field(default_factory=dict, description="labels of the worker nodes")
    registry_mirrors: dict[str, str] = Field(
        default_factory=dict, description="for a registry's host name, the URL that nodes ask instead"
    )


class ExistingSection(Strict):
    """What only provider existing is told."""

    kubeconfig: AFile | None = Field(None, description="as kubectl finds it, if not given")
    context: str | None = Field(None, min_length=1, description="the current one, if not given")
    allow: Literal["read-only", "workloads", "restart"] = Field(
        "workloads", description="only look; also make and delete objects of our own; also restart parts of nodes"
    )


class ImagesSection(Strict):
    """Images that nodes pull, or have, instead of the ones that are made and loaded."""

    workload: str | None = Field(None, min_length=1, description="for test pods: sh, sleep, env, cat and ls are in it")
    driver: str | None = Field(None, min_length=1, description="for the fake driver")


PROVIDER_SECTIONS = ("kind", "existing")
SECTIONS = (*PROVIDER_SECTIONS, "images")

# The flags that fill a section, with their places in the file.
SECTION_FLAGS: Mapping[str, tuple[str, str]] = {
    "node_image": ("kind", "nodeImage"),
    "kubeconfig": ("existing", "kubeconfig"),
    "context": ("existing", "context"),
    "allow": ("existing", "allow"),
    "workload_image": ("images", "workload"),
    "driver_image": ("images", "driver"),
}


def nest_section_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags with those of a section gathered under its name."""
    made: dict[str, Any] = {key: value for key, value in flags.items() if key not in SECTION_FLAGS}
    for key in flags.keys() & SECTION_FLAGS.keys():
        section, field = SECTION_FLAGS[key]
        made.setdefault(section, {})[field] = flags[key]
    return made


def refuse_other_providers(provider: str, given: Mapping[str, Any]) -> None:
    """What is said to another provider than the chosen one would be ignored, and nobody would notice."""
    for section in PROVIDER_SECTIONS:
        if section in given and section != provider:
            said = given[section].model_dump(by_alias=True, exclude_unset=True)
            raise UsageError(
                f"{', '.join(said) or section} means nothing to provider {provider}: it is for provider {section}",
                hint=f"leave it out, or add --provider {section}",
            )

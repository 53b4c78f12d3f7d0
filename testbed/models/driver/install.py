"""The section `install` of a driver file: how to install the driver, and in which older version. `driver_file` assembles the sections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from testbed.models.strict import Strict, existing_file, existing_path

ExistingFile = Annotated[Path, AfterValidator(existing_file)]
ExistingPath = Annotated[Path, AfterValidator(existing_path)]
_OF_OBJECTS = ("manifests", "kustomize", "chart")
_WAYS = (*_OF_OBJECTS, "process", "installed")
_ENDINGS = (".yaml", ".yml", ".json")


def _files(paths: tuple[Path, ...], info: ValidationInfo) -> tuple[Path, ...]:
    """Return the paths, with the manifests in a folder instead of the folder. Raise ValueError if a folder has none."""
    if info.context is None:
        return paths
    return tuple(file for path in paths for file in (_manifests_in(path) if path.is_dir() else [path]))


def _manifests_in(folder: Path) -> list[Path]:
    found = sorted(each for each in folder.iterdir() if each.suffix in _ENDINGS and each.is_file())
    if not found:
        raise ValueError(f"{folder} contains no file that ends with {', '.join(_ENDINGS)}")
    return found


class Chart(Strict):
    """A Helm chart."""

    path: ExistingPath = Field(description="Folder or archive of the chart, relative to this file.")
    values: ExistingFile | None = Field(None, description="File with values, relative to this file.")


class Process(Strict):
    """A program that is the driver, one process for each node. Only on nodes that have the files of this host: provider local."""

    command: tuple[str, ...] = Field(
        min_length=1,
        description="Command. A program with a relative path is a file relative to this one, and copied to each node. Template "
        "variables: node, pod_uid, driver_name, kubeconfig (a file with the credentials of an administrator, also in KUBECONFIG).",
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="Environment variables, with the same template variables."
    )
    files: dict[str, ExistingFile] = Field(
        default_factory=dict,
        description="Paths on the node with the files that are copied there, relative to this file.",
    )

    _program: Path | None = PrivateAttr(None)  # what `command` means, if it is a file beside the driver file

    @model_validator(mode="after")
    def _find_the_program(self, info: ValidationInfo) -> Process:
        name = self.command[0]
        if info.context is not None and "/" in name and not name.startswith("/"):
            self._program = existing_file(Path(name), info)
        return self

    @property
    def program(self) -> Path | None:
        """Return the program beside the driver file, or None if it is one of the node."""
        return self._program

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the command as it runs on a node. A program beside the driver file has the same path there as here."""
        return (str(self._program), *self.command[1:]) if self._program else self.command

    @property
    def copied(self) -> dict[str, Path]:
        """Return the paths on a node with the files that are copied there, the program among them."""
        return {**self.files, **({str(self._program): self._program} if self._program else {})}

    @field_validator("files")
    @classmethod
    def _require_absolute_paths(cls, files: dict[str, Path]) -> dict[str, Path]:
        for path in files:
            if not path.startswith("/") or ".." in path.split("/"):
                raise ValueError(f"has {path}, but paths on the node must be absolute")
        return files


class Previous(Strict):
    """The release before, for tests that update and downgrade the driver: one of manifests, kustomize, chart."""

    manifests: tuple[ExistingPath, ...] = Field(
        (), min_length=1, description="Files or folders, relative to this file."
    )
    kustomize: ExistingPath | None = Field(None, description="Folder of a kustomization, relative to this file.")
    chart: Chart | None = None
    images: tuple[ExistingFile, ...] = Field(
        (), description="Archives of images to load, relative to this file. Default: those of install."
    )
    variables: dict[str, Any] = Field(
        default_factory=dict, description="Variables of the templates, in addition to those of install or instead."
    )

    _expand = field_validator("manifests")(_files)

    @model_validator(mode="after")
    def _require_one_way(self) -> Previous:
        _require_one(self, _OF_OBJECTS)
        return self


class Install(Strict):
    """How to install the driver: one of manifests, kustomize, chart, process, installed. All but the last may have manifests."""

    manifests: tuple[ExistingPath, ...] = Field(
        (),
        min_length=1,
        description="Manifests: files or folders relative to this file, applied in this order, and before those of kustomize or chart. "
        "They are templates with {{ variables }}.",
    )
    kustomize: ExistingPath | None = Field(None, description="Folder of a kustomization, relative to this file.")
    chart: Chart | None = None
    process: Process | None = None
    installed: bool = Field(False, description="true: the driver is installed already.")
    built_in_image: bool = Field(
        False, description="Whether the variable `image` is set to the driver image that dra-testbed builds."
    )
    images: tuple[ExistingFile, ...] = Field((), description="Archives of images to load, relative to this file.")
    pull_secret: str = Field(
        "",
        description="Secret in the driver's namespace with which its images are pulled. Test pods get a copy, also with installed: true.",
    )
    variables: dict[str, Any] = Field(default_factory=dict, description="Variables of the templates.")
    variables_from_files: dict[str, ExistingFile] = Field(
        default_factory=dict, description="Variables whose values are the contents of files, relative to this file."
    )
    previous: Previous | None = None

    _expand = field_validator("manifests")(_files)

    @model_validator(mode="after")
    def _require_one_way(self) -> Install:
        _require_one(self, _WAYS)
        unused = sorted(self.model_fields_set - {"installed", "pull_secret"}) if self.installed else []
        if unused:
            raise ValueError(f"has installed: true, so {_camel(unused[0])} has no effect; remove one of them")
        return self

    @model_validator(mode="after")
    def _set_each_variable_once(self) -> Install:
        if self.built_in_image and "image" in self.variables:
            raise ValueError("sets the variable image, which builtInImage sets too")
        duplicates = sorted(self.variables.keys() & self.variables_from_files.keys())
        if duplicates:
            raise ValueError(f"sets the variable {duplicates[0]} both in variables and in variablesFromFiles")
        return self

    def as_previous(self) -> Install | None:
        """Return how to install the previous release, or None if the driver file has none."""
        before = self.previous
        if before is None:
            return None
        variables = {**self.variables, **before.variables}
        of_files = {name: file for name, file in self.variables_from_files.items() if name not in before.variables}
        source = {name: getattr(before, name) for name in _OF_OBJECTS}
        changed = {
            "process": None,
            "variables": variables,
            "variables_from_files": of_files,
            "images": before.images or self.images,
        }
        return self.model_copy(update={**source, **changed, "previous": None})


def _require_one(section: Strict, ways: tuple[str, ...]) -> None:
    """Raise ValueError unless a section has exactly one of these keys. Manifests can be added to all but `installed`."""
    found = [name for name in ways if getattr(section, name)]
    found = [name for name in found if name != "manifests" or not {"kustomize", "chart", "process"}.intersection(found)]
    if len(found) != 1:
        raise ValueError(f"has {' and '.join(found) or 'none'} of {', '.join(ways)}, but must have one of them")


def _camel(field: str) -> str:
    return str(Install.model_fields[field].alias or field)

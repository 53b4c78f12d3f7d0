"""Reads a driver's objects as its vendor wrote them: from templates, a kustomization or a chart. Used by `install`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from testbed.drivers.manifests import charts, kustomizations, processes
from testbed.errors import UsageError
from testbed.kube.client import Object
from testbed.models.driver.install import Install
from testbed.models.driver_file import DriverFile
from testbed.models.strict import require_kind
from testbed.rendering import render_file, variables_of

# For docs/driver-file.md.
TEMPLATE_VARIABLES = {
    "driver_name": "`spec.driver`",
    "namespace": "`spec.pods.namespace`",
    "image": "with `builtInImage: true`, the image that `dra-testbed images` builds, or that of `--driver-image`",
    "hardware": "the content of the file that `--hardware` names, or of `variablesFromFiles.hardware`",
}


def objects_of(
    driver_file: DriverFile, *, image: str = "", hardware: Path | None = None, kubernetes: str = ""
) -> list[Object]:
    """Return the objects of a driver as its vendor wrote them."""
    rendered = rendered_manifests(driver_file, image=image, hardware=hardware, kubernetes=kubernetes)
    return [each for path, text in rendered.items() for each in _parsed(path, text)]


def rendered_manifests(
    driver_file: DriverFile, *, image: str = "", hardware: Path | None = None, kubernetes: str = ""
) -> dict[Path, str]:
    """Return a driver's manifests as YAML, by template, kustomization or chart."""
    _refuse_unused_hardware(driver_file, hardware)
    install = driver_file.install
    if install is None:
        return {}
    found = _rendered_templates(driver_file, install, image, hardware)
    if install.kustomize:
        found[install.kustomize] = kustomizations.build(install.kustomize)
    if install.process:
        found[Path("spec.install.process")] = processes.rendered(driver_file, install.process)
    if install.chart:
        found[install.chart.path] = charts.template(driver_file, install.chart, kubernetes)
    return found


def _rendered_templates(
    driver_file: DriverFile, install: Install, image: str, hardware: Path | None
) -> dict[Path, str]:
    files = {**install.variables_from_files, **({"hardware": hardware} if hardware else {})}
    variables: dict[str, object] = {  # described in TEMPLATE_VARIABLES
        "driver_name": driver_file.driver,
        "namespace": driver_file.pods.namespace,
        **({"image": image} if image and install.built_in_image else {}),
        **install.variables,
        **{name: path.read_text(encoding="utf-8") for name, path in files.items()},
    }
    return {path: render_file(path, variables, allow_unused=True) for path in install.manifests}


def takes_hardware(driver_file: DriverFile) -> bool:
    """Return True if one of the driver's templates uses the variable `hardware`."""
    templates = driver_file.install.manifests if driver_file.install else ()
    return any("hardware" in variables_of(path) for path in templates)


def _parsed(path: Path, text: str) -> list[Object]:
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as broken:
        raise UsageError(f"{path} is not valid YAML after rendering: {broken}") from broken
    found = [each for content in documents if content for each in _items(content)]
    for content in found:
        if not _is_object(content):
            raise UsageError(
                f"{path} contains a document that is not a Kubernetes object: {content!r:.80}",
                hint="each document needs apiVersion, kind and metadata.name",
            )
    return found


def _items(content: Any) -> Iterator[Any]:
    """Yield the objects of a list, as kubectl prints it, or else the document itself."""
    is_list = isinstance(content, dict) and content.get("kind") == "List" and isinstance(content.get("items"), list)
    yield from content["items"] if is_list else [content]


def _is_object(content: object) -> bool:
    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
        return False
    return bool(content.get("apiVersion") and content.get("kind") and content["metadata"].get("name"))


def _refuse_unused_hardware(driver_file: DriverFile, hardware: Path | None) -> None:
    """Raise UsageError for a hardware file that no template uses, or for a file of another kind."""
    if not hardware:
        return
    if not takes_hardware(driver_file):
        raise UsageError(
            f"driver {driver_file.name} does not use --hardware {hardware}: no manifest of it has the variable hardware",
            hint="remove --hardware, or use {{ hardware }} in a manifest of the driver file",
        )
    require_kind(hardware, "Hardware")

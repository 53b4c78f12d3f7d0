"""Checks what a driver file refers to before there is a cluster: manifests, rendered, and image archives. Used by bringup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.drivers.companions import all_manifests
from testbed.drivers.manifests import tools
from testbed.drivers.name_checks import WrongName, raise_problems
from testbed.errors import UsageError, did_you_mean
from testbed.images.archives import names_in
from testbed.kube.client import Object
from testbed.models.driver_file import DriverFile

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:_-]*[A-Za-z0-9])?")  # names of roles may contain colons
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_VERSION = re.compile(r"([a-z0-9.-]+/)?v[0-9]+((alpha|beta)[0-9]+)?")
_MAX_NAME = 253
_WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet")


def check(drivers: Sequence[DriverFile], hardware: Path | None, kubernetes: str = "") -> None:
    """Raise UsageError for manifests that are invalid or do not have the pods of the driver file, and for archives without images."""
    check_files(drivers, hardware, kubernetes)
    for each in drivers[:1]:
        raise_problems(each, wrong_pods(each, hardware, kubernetes), of="its manifests")


def check_files(drivers: Sequence[DriverFile], hardware: Path | None, kubernetes: str = "") -> None:
    """Raise UsageError for a manifest that is not valid YAML or no Kubernetes object, and for an archive without images."""
    tools.fetch_missing(drivers)
    for each in all_manifests(drivers, image="image", hardware=hardware, kubernetes=kubernetes):
        _check_object(each)
    for archive in dict.fromkeys(archive for each in drivers if each.install for archive in each.install.images):
        names_in(archive)


def wrong_pods(driver_file: DriverFile, hardware: Path | None = None, kubernetes: str = "") -> list[WrongName]:
    """Return what spec.pods says and the manifests contradict. An operator may create the pods: then the manifests do not have them."""
    pods, wanted = driver_file.pods, _labels_in(driver_file.pods.selector)
    objects = all_manifests([driver_file], image="image", hardware=hardware, kubernetes=kubernetes)
    templates = _pod_templates(objects, pods.namespace)
    if not wanted or not templates:
        return []
    matching = [each for each in templates if wanted.items() <= each.labels.items()]
    here = [each for each in matching if each.namespace == pods.namespace]
    if not matching:
        hint = did_you_mean(
            pods.selector, {f"{key}={value}" for each in templates for key, value in each.labels.items()}
        )
        return [WrongName("spec.pods.selector", f"no pod matches {pods.selector}; {hint}")] if "did" in hint else []
    if not here:
        others = " and ".join(sorted({each.namespace for each in matching}))
        what = f"no pod in {pods.namespace} matches {pods.selector}, but pods in {others} do"
        return [WrongName("spec.pods.namespace", what)]
    names = {name for each in here for name in each.containers}
    if pods.container in names:
        return []
    hint = did_you_mean(pods.container, names)
    what = f"no pod of the driver has a container {pods.container}"
    return [WrongName("spec.pods.container", "; ".join(filter(None, [what, hint])))]


@dataclass(frozen=True)
class _Template:
    """The pods that a workload in the manifests creates."""

    namespace: str
    labels: Mapping[str, str]
    containers: tuple[str, ...]


def _pod_templates(objects: Iterable[Object], namespace: str) -> list[_Template]:
    found = []
    for each in objects:
        template = (each.get("spec") or {}).get("template")
        if each["kind"] not in _WORKLOADS or not isinstance(template, dict):
            continue
        spec = template.get("spec") or {}
        names = [part.get("name", "") for key in ("initContainers", "containers") for part in spec.get(key) or ()]
        labels = (template.get("metadata") or {}).get("labels") or {}
        found.append(_Template(each["metadata"].get("namespace", namespace), labels, tuple(names)))
    return found


def _labels_in(selector: str) -> dict[str, str]:
    """Return the labels of a selector that only has terms such as app=plugin; otherwise none."""
    terms = [term.strip().replace("==", "=").partition("=") for term in selector.split(",")]
    is_plain = all(sign and value and "!" not in key and "(" not in value for key, sign, value in terms)
    return {key.strip(): value.strip() for key, _, value in terms} if is_plain else {}


def _check_object(manifest: Object) -> None:
    metadata = manifest["metadata"]
    values = {
        "apiVersion": (manifest["apiVersion"], _VERSION),
        "kind": (manifest["kind"], _KIND),
        "metadata.name": (metadata["name"], _NAME),
        "metadata.namespace": (metadata.get("namespace", "default"), _NAME),
    }
    for field, (value, pattern) in values.items():
        if not isinstance(value, str) or len(value) > _MAX_NAME or not pattern.fullmatch(value):
            raise UsageError(
                f"a manifest of the driver has an invalid {field}: {value!r:.100} (kind {manifest['kind']!r:.60}, "
                f"name {metadata['name']!r:.60})",
                hint="correct the manifest; dra-testbed up --plan shows all objects",
            )

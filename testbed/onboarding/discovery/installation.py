"""Installs a driver on a testbed before anything is known about it. Used by `initialize`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.bringup import Testbed
from testbed.drivers.install import install
from testbed.drivers.manifests.pods import containers, pod_specs
from testbed.drivers.manifests.process_files import copy_node_files
from testbed.drivers.manifests.sources import objects_of
from testbed.errors import UsageError
from testbed.images.archives import names_in
from testbed.kube import features, nodes
from testbed.onboarding.discovery.inference.pods import node_labels
from testbed.onboarding.discovery.sources import UNKNOWN, Source, provisional
from testbed.progress import Progress
from testbed.providers.base import LoadsImages


@dataclass(frozen=True)
class Installed:
    """What was installed: the namespaces of the DaemonSets, and the vendor's names of images by DaemonSet and container."""

    namespaces: frozenset[str] = frozenset()
    images: Mapping[tuple[str, str], str] = field(default_factory=dict)


def install_source(
    testbed: Testbed, source: Source, images: Sequence[Path], progress: Progress, driver: str = UNKNOWN
) -> Installed:
    """Load the images, label the nodes as the pods need it, and install the driver.

    Raise UsageError on a cluster that dra-testbed did not make.
    """
    if not isinstance(testbed.cluster, LoadsImages):
        raise UsageError(
            f"--from installs a driver only on nodes that dra-testbed makes, not with provider {testbed.config.provider}",
            hint="install the driver in the cluster first, and leave --from out",
        )
    driver_file = provisional(source, driver=driver)
    objects = objects_of(driver_file, kubernetes=features.version(testbed.kube))
    labels = {key: value for each in objects for spec in pod_specs(each) for key, value in node_labels(spec).items()}
    if labels:
        nodes.label(testbed.kube, labels)
        progress.say(f"note: nodes get the labels {', '.join(f'{key}={value}' for key, value in labels.items())}")
    copy_node_files(testbed.cluster, [driver_file])
    loaded = [name for archive in images for name in _load(testbed.cluster, archive, progress)]
    with progress.step(f"{source.name} installed"):
        install(
            testbed.kube,
            driver_file,
            testbed.owner,
            loaded=loaded,
            report=lambda change: progress.say(f"note: {change}"),
        )
    home = driver_file.pods.namespace
    daemonsets = [each for each in objects if each["kind"] == "DaemonSet"]
    return Installed(
        frozenset(each["metadata"].get("namespace", home) for each in daemonsets),
        {
            (each["metadata"]["name"], container["name"]): str(container.get("image", ""))
            for each in daemonsets
            for spec in pod_specs(each)
            for container in containers(spec)
        },
    )


def _load(cluster: LoadsImages, archive: Path, progress: Progress) -> tuple[str, ...]:
    with progress.step(f"{archive.name} into the nodes"):
        cluster.load_image(archive)
    return names_in(archive)

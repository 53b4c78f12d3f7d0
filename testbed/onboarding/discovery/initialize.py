"""`driver init`: installs a driver on a testbed, observes it, and writes its driver file."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from testbed import bringup
from testbed.bringup import Testbed
from testbed.drivers.install import uninstall
from testbed.drivers.manifests import tools
from testbed.errors import UsageError
from testbed.kube.client import Object
from testbed.models.config import TestbedConfig
from testbed.models.driver_file import load_driver_file
from testbed.onboarding.checks.all_checks import check_on
from testbed.onboarding.checks.finding import Finding, with_lines
from testbed.onboarding.discovery.class_choice import choose_classes
from testbed.onboarding.discovery.draft import Observed, draft
from testbed.onboarding.discovery.facts import ClusterFacts
from testbed.onboarding.discovery.gathering import gather, wait_for_devices
from testbed.onboarding.discovery.inference import pods
from testbed.onboarding.discovery.inference.pods import PodsFinding
from testbed.onboarding.discovery.installation import Installed, install_source
from testbed.onboarding.discovery.observing import observe
from testbed.onboarding.discovery.questions import Questions
from testbed.onboarding.discovery.sources import UNKNOWN, Source, provisional
from testbed.onboarding.discovery.writer import write
from testbed.progress import Progress


@dataclass(frozen=True)
class InitRequest:
    """What the user asks for. `testbed` is the name of a testbed that is up; without it, one is made of `config` and removed again."""

    source: Source
    config: TestbedConfig
    testbed: str = ""
    images: tuple[Path, ...] = ()
    driver_name: str = ""
    output: Path | None = None
    force: bool = False

    @property
    def file(self) -> Path:
        """Return the driver file to write."""
        return self.output or Path(f"{self.source.name}.yaml")

    @property
    def class_file(self) -> Path:
        """Return the file for a DeviceClass, if the driver has none."""
        return self.file.with_name(f"{self.file.stem}-class.yaml")


def initialize(request: InitRequest, questions: Questions, progress: Progress) -> list[Finding]:
    """Write a driver file, and return what a check of it finds.

    The testbed is removed, also after a failure, unless the request names one.
    """
    for file in (request.file, request.class_file):
        _refuse_to_overwrite(file, request)
    tools.fetch_missing([provisional(request.source)])
    with _testbed(request, progress) as testbed:
        return _Initializer(request, questions, progress, testbed).run()


@contextlib.contextmanager
def _testbed(request: InitRequest, progress: Progress) -> Iterator[Testbed]:
    if request.testbed:
        yield bringup.attach(request.testbed)
        return
    name = f"init-{secrets.token_hex(3)}" if request.config.name == TestbedConfig.name else request.config.name
    config = replace(request.config, name=name, driver=None)
    testbed = bringup.bring_up(config, progress, ephemeral=True)
    try:
        yield testbed
    finally:
        bringup.tear_down(testbed.name, progress)


def _refuse_to_overwrite(path: Path, request: InitRequest) -> None:
    if path.exists() and not request.force:
        raise UsageError(f"{path} exists", hint="--output with another path, or --force to overwrite it")


@dataclass(frozen=True)
class _Initializer:
    """One run of `driver init` on a testbed."""

    request: InitRequest
    questions: Questions
    progress: Progress
    testbed: Testbed

    def run(self) -> list[Finding]:
        """Install the driver, observe it, write the driver file, and return what a check of it finds."""
        source, name = self.request.source, self.request.driver_name or UNKNOWN
        installed, facts = self._install(name)
        driver = self._driver(facts)
        if source.is_process and driver != name:  # its pods are named after the driver
            uninstall(self.testbed.kube, provisional(source, driver=name), self.testbed.owner)
            installed, facts = self._install(driver)
        devices = [each for each in facts.devices if each.driver == driver]
        running = self._pods(facts, driver, {each.node for each in devices if each.node})
        # A loaded image may have another name than in the vendor's manifests.
        image = installed.images.get((running.daemonset, running.container), running.image)
        found_pods = replace(running, image=image)
        found_classes, made = choose_classes(facts, driver, devices, self.questions)
        if made:
            self.testbed.kube.apply(self.testbed.owner.mark(made), manager=self.testbed.owner.manager)
        found = Observed(driver, self._section(made), found_pods, found_classes, facts.nodes, facts.slices)
        return self._write(observe(self.testbed, source, found, self.progress), made)

    def _install(self, driver: str) -> tuple[Installed, ClusterFacts]:
        """Install the driver unless it is there already, and return what was installed and what the cluster says then."""
        source, images = self.request.source, self.request.images
        made = Installed()
        if source.installs:
            made = install_source(self.testbed, source, images, self.progress, driver)
        with self.progress.step("devices of the driver"):
            wait_for_devices(self.testbed.kube, made.namespaces)
        return made, gather(self.testbed.kube)

    def _driver(self, facts: ClusterFacts) -> str:
        names, wanted = facts.drivers, self.request.driver_name
        if not names:
            raise UsageError(
                "the cluster has no ResourceSlice", hint="install the driver first, or name its manifests with --from"
            )
        if wanted and wanted not in names:
            raise UsageError(f"no ResourceSlice is of driver {wanted}", hint=f"--driver-name {' or '.join(names)}")
        most = max(names, key=lambda name: sum(each.driver == name for each in facts.devices))
        return wanted or self.questions.choose("driver", "Which driver is described?", names, most)

    def _pods(self, facts: ClusterFacts, driver: str, on: Collection[str]) -> PodsFinding:
        if self.request.source.is_process:
            home = provisional(self.request.source, driver=driver).pods.namespace
            return pods.describe(
                next(each for each in facts.daemonsets if each.daemonset["metadata"]["namespace"] == home)
            )
        found = pods.candidates(facts.daemonsets, driver, on)
        if not found:
            raise UsageError(
                f"no DaemonSet mounts the folder of the kubelet's plugins, so none can be driver {driver}",
                hint="write the driver file by hand: docs/driver-file.md",
            )
        names = [each.name for each in found]
        name = (
            names[0]
            if pods.is_clear(found, driver)
            else self.questions.choose("pods", f"Which DaemonSet is {driver}?", names, names[0])
        )
        return pods.describe(found[names.index(name)])

    def _section(self, made: Object | None) -> dict[str, Any]:
        """Return the section `install`, with the file of a class that the driver lacks."""
        section = self.request.source.relative_to(self.request.file.absolute().parent)
        if made is None:
            return section
        if not self.request.source.installs:
            file = self.request.class_file
            self.questions.note("devices.classes", f"Install this class, which is new: kubectl apply -f {file.name}")
            return section
        return {**section, "manifests": [*section.get("manifests", ()), self.request.class_file.name]}

    def _write(self, observed: Observed, made: Object | None) -> list[Finding]:
        """Write the driver file, and the class that the driver lacks; return what a check of the driver file finds."""
        path, class_file = self.request.file, self.request.class_file
        text = write(self.request.source.name, draft(observed, self.questions), self.questions.open)
        if made:
            class_file.write_text(yaml.safe_dump(made, sort_keys=False, width=130), encoding="utf-8")
            self.progress.say(f"wrote {class_file}: the driver has no DeviceClass")
        path.write_text(text, encoding="utf-8")
        with self.progress.step(f"{path} checked"):
            return with_lines(check_on(self.testbed, load_driver_file(path)), path)

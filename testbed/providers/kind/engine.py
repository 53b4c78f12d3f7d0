"""The container engine that kind uses: Docker, Podman or nerdctl, asked through its command line. For the provider and its clusters."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed import process
from testbed.errors import CommandFailed, TestbedError
from testbed.process import Completed
from testbed.providers.base import Problem
from testbed.providers.freezer import thaw
from testbed.waiting import Budget, NotYet, eventually

_CHOICE = "KIND_EXPERIMENTAL_PROVIDER"  # kind's own variable
_ENGINES = ("docker", "nerdctl", "podman")  # in the order in which kind looks for them
_GONE = Budget("nodes gone", 90, "5 s; an engine that is busy says that it could not, and then has")
_CLUSTER_LABEL = "io.x-k8s.kind.cluster"


@dataclass(frozen=True)
class Engine:
    """One engine, by the name of its program."""

    program: str

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        """Run a command of the engine."""
        return process.run([self.program, *argv], check=check, timeout=timeout)

    def has_image(self, reference: str) -> bool:
        """Whether a container of that image starts without asking a registry."""
        return self.run("image", "inspect", "--format", "{{.Id}}", reference, check=False).ok

    def pull(self, reference: str) -> None:
        """Fetch an image from its registry."""
        self.run("pull", "--quiet", reference, timeout=900)

    def load(self, archive: Path) -> None:
        """Take over an image from an archive."""
        self.run("load", "--input", str(archive), timeout=300)

    def containers(self, cluster: str | None = None) -> dict[str, str]:
        """The node containers of one kind cluster, or of all, running or not: name to cluster."""
        wanted = f"label={_CLUSTER_LABEL}" + (f"={cluster}" if cluster else "")
        shown = f'{{{{.Names}}}} {{{{index .Labels "{_CLUSTER_LABEL}"}}}}'
        if self.program == "docker":
            shown = f'{{{{.Names}}}} {{{{.Label "{_CLUSTER_LABEL}"}}}}'
        said = self.run("ps", "--all", "--filter", wanted, "--format", shown).stdout
        return dict(sorted(line.split() for line in said.splitlines() if len(line.split()) == 2))

    def running(self, container: str) -> bool:
        """Whether a container runs."""
        said = self.run("inspect", "--format", "{{.State.Running}}", container, check=False)
        return said.ok and said.stdout.strip() == "true"

    def identity(self, container: str) -> str:
        """The long name of a container, which its cgroups carry; empty when it is gone."""
        return self.run("inspect", "--format", "{{.Id}}", container, check=False).stdout.strip()

    def mounted_from(self, container: str, target: str) -> Path | None:
        """The folder of the host that a container sees at a place."""
        shown = '{{range .Mounts}}{{.Destination}} {{.Source}}{{"\\n"}}{{end}}'
        for line in self.run("inspect", "--format", shown, container, check=False).stdout.splitlines():
            place, _, source = line.partition(" ")
            if place == target:
                return Path(source)
        return None

    def remove(self, cluster: str) -> list[str]:
        """Remove every container of a kind cluster with its volumes; returns their names. None is fine."""
        removed: set[str] = set()

        def gone() -> None:
            """Again after a success, because one may have been starting while we looked; and after a refusal of a busy engine."""
            while found := self.containers(cluster):
                removed.update(found)
                said = self.run("rm", "--force", "--volumes", *found, check=False, timeout=120)
                if not said.ok:
                    for container in found:
                        thaw(self.identity(container))
                    raise NotYet(said.stderr.strip())

        eventually(gone, f"the nodes of {cluster} to be gone", _GONE, hint=f"{self.program} ps --all")
        return sorted(removed)


def chosen(environment: Mapping[str, str] = os.environ) -> Engine:
    """The engine that kind would use here."""
    said = environment.get(_CHOICE, "")
    if said in (*_ENGINES, "finch"):
        return Engine(said)
    return Engine(next((name for name in _ENGINES if shutil.which(name)), "docker"))


def problems(engine: Engine) -> list[Problem]:
    """Why the engine cannot make nodes here, if so."""
    if not shutil.which(engine.program):
        names = ", ".join(_ENGINES)
        return [Problem(f"kind needs a container engine, and {names} are not here", "install Docker, or Podman")]
    try:
        engine.run("info", "--format", "{{json .}}", timeout=30)
    except CommandFailed as refused:
        return [_refused(engine, refused)]
    return []


def cgroup_version(engine: Engine) -> int:
    """The version of the cgroups that nodes will see."""
    shown = "{{.Host.CgroupsVersion}}" if engine.program == "podman" else "{{.CgroupVersion}}"
    said = engine.run("info", "--format", shown, check=False).stdout
    found = re.search(r"[12]", said)
    return int(found[0]) if found else 2


def default_runtime(engine: Engine) -> str:
    """The OCI runtime that starts containers when nobody names one; empty where the engine does not say."""
    said = engine.run("info", "--format", "{{.DefaultRuntime}}", check=False)
    return said.stdout.strip() if said.ok else ""


def _refused(engine: Engine, refused: CommandFailed) -> Problem:
    said = refused.output.strip().splitlines()
    last = next((line for line in reversed(said) if line.strip()), refused.status)
    if "permission denied" in refused.output.lower():
        cure = f"let this user use {engine.program} (group docker), or run as root"
        return Problem(f"{engine.program} is there, but this user may not use it: {last}", cure)
    cure = f"start {engine.program}; where it listens elsewhere, set DOCKER_HOST"
    return Problem(f"{engine.program} is there, but its engine does not answer: {last}", cure)


def lost(engine: Engine, what: str, failed: CommandFailed) -> TestbedError:
    """The error for something that the engine refused."""
    last = next((line for line in reversed(failed.output.strip().splitlines()) if line.strip()), failed.status)
    return TestbedError(f"{engine.program} {what}: {last}", hint=f"try it by hand: {' '.join(failed.argv)}")

"""A container engine, through its command line: containers, images, volumes, and `info`. For the kind provider and its clusters."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed import process
from testbed.errors import CommandFailed, TestbedError
from testbed.process import Completed
from testbed.providers.cgroup_freezer import thaw
from testbed.waiting import Budget, NotYet, eventually

CHOICE = "KIND_EXPERIMENTAL_PROVIDER"  # kind's own variable
# The variables that select the engine. They are recorded, because a later command may run with other values.
SELECTING = (
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_API_VERSION", "CONTAINER_HOST", "CONTAINER_CONNECTION",
    "CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE",
)  # fmt: skip
_GONE = Budget("nodes gone", 90, "5 s; a busy engine may report a failure although it then succeeds")
_CLUSTER_LABEL = "io.x-k8s.kind.cluster"
_PODMAN_LABELS = (
    5  # the first version whose templates have `.Label`; older ones have the map `.Labels`, which version 6 lacks
)

# The templates for `info`: of Docker and nerdctl, and of Podman. Podman has no daemon ID, so its storage folder identifies it.
_FACTS = {
    "id": ("{{.ID}}", "{{.Store.GraphRoot}}"),
    "host": ("{{.Name}}", "{{.Host.Hostname}}"),
    "folder": ("{{.DockerRootDir}}", "{{.Store.GraphRoot}}"),  # of its containers
    "rootless": ("{{.SecurityOptions}}", "{{.Host.Security.Rootless}}"),
    "runtime": ("{{.DefaultRuntime}}", "{{.Host.OCIRuntime.Name}}"),
    "cgroups": ("{{.CgroupVersion}}", "{{.Host.CgroupsVersion}}"),
}


@dataclass(frozen=True)
class Engine:
    """A container engine: the name of its program, and the values of the SELECTING variables."""

    program: str
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment with which the client and kind use this engine and no other."""
        others = {name: value for name, value in os.environ.items() if name not in SELECTING}
        return {**others, **self.variables, CHOICE: self.program}

    @property
    def is_podman(self) -> bool:
        """True for Podman, whose output and storage differ in several ways."""
        return self.program == "podman"

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        """Run a command of the engine's program."""
        return process.run([self.program, *argv], check=check, timeout=timeout, env=self.environment)

    def info(self, fact: str) -> str:
        """Return one of _FACTS; '' if the engine does not answer or does not know it."""
        answer = self.run("info", "--format", _FACTS[fact][self.is_podman], check=False)
        return answer.stdout.strip() if answer.ok else ""

    def has_image(self, reference: str) -> bool:
        """Return True if the engine has the image, so that it need not pull it."""
        return self.run("image", "inspect", "--format", "{{.Id}}", reference, check=False).ok

    def pull(self, reference: str) -> None:
        """Pull an image from its registry."""
        self.run("pull", "--quiet", reference, timeout=900)

    def load(self, archive: Path) -> None:
        """Load an image from an archive."""
        self.run("load", "--input", str(archive), timeout=300)

    def containers(self, cluster: str | None = None) -> dict[str, str]:
        """Return the node containers of one kind cluster, or of all, running or not: container name to cluster name."""
        wanted = f"label={_CLUSTER_LABEL}" + (f"={cluster}" if cluster else "")
        shown = f"{{{{.Names}}}} {{{{{self._label()}}}}}"
        output = self.run("ps", "--all", "--filter", wanted, "--format", shown).stdout
        return dict(sorted(line.split() for line in output.splitlines() if len(line.split()) == 2))

    def running(self, container: str) -> bool:
        """Return True if a container runs."""
        answer = self.run("inspect", "--format", "{{.State.Running}}", container, check=False)
        return answer.ok and answer.stdout.strip() == "true"

    def identity(self, container: str) -> str:
        """Return the full ID of a container, which is part of its cgroups' names; '' if there is no such container."""
        return self.run("inspect", "--format", "{{.Id}}", container, check=False).stdout.strip()

    def mounted_from(self, container: str, target: str) -> Path | None:
        """Return the folder of the host that is mounted into a container at `target`; None if there is none."""
        shown = '{{range .Mounts}}{{.Destination}} {{.Source}}{{"\\n"}}{{end}}'
        for line in self.run("inspect", "--format", shown, container, check=False).stdout.splitlines():
            destination, _, source = line.partition(" ")
            if destination == target:
                return Path(source)
        return None

    def remove(self, cluster: str) -> list[str]:
        """Remove all containers of a kind cluster with their volumes; return the containers' names."""
        removed: set[str] = set()

        def gone() -> None:
            """Remove them until none is left: another one may have been starting, and a busy engine may refuse."""
            while found := self.containers(cluster):
                removed.update(found)
                removal = self.run("rm", "--force", "--volumes", *found, check=False, timeout=120)
                if not removal.ok:
                    for container in found:
                        thaw(self.identity(container))
                    raise NotYet(removal.stderr.strip())
            if volumes := self._named_volumes(cluster):
                self.run("volume", "rm", "--force", *volumes)

        eventually(gone, f"the nodes of {cluster} to be gone", _GONE, hint=f"{self.program} ps --all")
        return sorted(removed)

    def _label(self) -> str:
        """Return the template expression for the label with the name of a container's cluster."""
        if self.is_podman:
            version = re.search(r"(\d+)\.", self.run("--version").stdout)
            if version and int(version[1]) < _PODMAN_LABELS:
                return f'index .Labels "{_CLUSTER_LABEL}"'
        return f'.Label "{_CLUSTER_LABEL}"'

    def _named_volumes(self, cluster: str) -> list[str]:
        """Return the volumes of the nodes: with Podman, kind creates one for /var of each node, labelled with its name."""
        if not self.is_podman:
            return []
        node = re.compile(rf"{re.escape(cluster)}-(control-plane|worker)\d*")
        listed = json.loads(self.run("volume", "ls", "--format", "json").stdout.strip() or "[]")
        return [each["Name"] for each in listed or [] if any(map(node.fullmatch, each.get("Labels") or {}))]


def is_rootless(engine: Engine) -> bool:
    """Return True if root in the engine's containers is the user who started the engine."""
    answer = engine.info("rootless")
    return answer == "true" if engine.is_podman else "name=rootless" in answer


def cgroup_version(engine: Engine) -> int:
    """Return the version of the cgroups in the engine's containers."""
    found = re.search(r"[12]", engine.info("cgroups"))
    return int(found[0]) if found else 2


def engine_failed(engine: Engine, what: str, failed: CommandFailed) -> TestbedError:
    """Return the error for a command that the engine refused."""
    return TestbedError(
        f"{engine.program} {what}: {last_line(failed)}", hint=f"run the command yourself: {' '.join(failed.argv)}"
    )


def last_line(failed: CommandFailed) -> str:
    """Return the last line of a command's output, or its status if it has none."""
    return next((line for line in reversed(failed.output.strip().splitlines()) if line.strip()), failed.status)

"""One container engine, asked through its command line: containers, images, volumes, and what it says of itself.

For the provider and its clusters; `engine_choice` says which engine it is.
"""

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
# What decides which engine a client speaks with. Whoever comes back to a cluster may have set them to something else.
DECIDING = (
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_API_VERSION", "CONTAINER_HOST", "CONTAINER_CONNECTION",
    "CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE",
)  # fmt: skip
_GONE = Budget("nodes gone", 90, "5 s; an engine that is busy says that it could not, and then has")
_CLUSTER_LABEL = "io.x-k8s.kind.cluster"
_PODMAN_LABELS = 5  # the first version that can show one label; before it has a map of them, which version 6 has not

# What `info` calls things: Docker and nerdctl, Podman. Podman has no daemon with an id; it is where its containers lie.
_FACTS = {
    "id": ("{{.ID}}", "{{.Store.GraphRoot}}"),
    "host": ("{{.Name}}", "{{.Host.Hostname}}"),
    "folder": ("{{.DockerRootDir}}", "{{.Store.GraphRoot}}"),  # where it keeps containers
    "rootless": ("{{.SecurityOptions}}", "{{.Host.Security.Rootless}}"),
    "runtime": ("{{.DefaultRuntime}}", "{{.Host.OCIRuntime.Name}}"),
    "cgroups": ("{{.CgroupVersion}}", "{{.Host.CgroupsVersion}}"),
}


@dataclass(frozen=True)
class Engine:
    """One engine: the name of its program, and the variables (of DECIDING) that lead to it."""

    program: str
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Ours, but such that the client and kind speak with this engine and no other."""
        others = {name: value for name, value in os.environ.items() if name not in DECIDING}
        return {**others, **self.variables, CHOICE: self.program}

    @property
    def is_podman(self) -> bool:
        """Podman says and keeps several things differently."""
        return self.program == "podman"

    def run(self, *argv: str, check: bool = True, timeout: float = 60) -> Completed:
        """Run a command of the engine."""
        return process.run([self.program, *argv], check=check, timeout=timeout, env=self.environment)

    def says(self, fact: str) -> str:
        """One of _FACTS; empty where the engine does not say."""
        said = self.run("info", "--format", _FACTS[fact][self.is_podman], check=False)
        return said.stdout.strip() if said.ok else ""

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
        shown = f"{{{{.Names}}}} {{{{{self._label()}}}}}"
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
            if volumes := self._named_volumes(cluster):
                self.run("volume", "rm", "--force", *volumes)

        eventually(gone, f"the nodes of {cluster} to be gone", _GONE, hint=f"{self.program} ps --all")
        return sorted(removed)

    def _label(self) -> str:
        """How a template shows the label that names a container's cluster."""
        if self.is_podman:
            version = re.search(r"(\d+)\.", self.run("--version").stdout)
            if version and int(version[1]) < _PODMAN_LABELS:
                return f'index .Labels "{_CLUSTER_LABEL}"'
        return f'.Label "{_CLUSTER_LABEL}"'

    def _named_volumes(self, cluster: str) -> list[str]:
        """For Podman, kind makes each node's /var a volume with the node's name as a label, before there is a container."""
        if not self.is_podman:
            return []
        node = re.compile(rf"{re.escape(cluster)}-(control-plane|worker)\d*")
        listed = json.loads(self.run("volume", "ls", "--format", "json").stdout.strip() or "[]")
        return [each["Name"] for each in listed or [] if any(map(node.fullmatch, each.get("Labels") or {}))]


def is_rootless(engine: Engine) -> bool:
    """Whether root in its containers is the user who started it."""
    said = engine.says("rootless")
    return said == "true" if engine.is_podman else "name=rootless" in said


def cgroup_version(engine: Engine) -> int:
    """The version of the cgroups that nodes will see."""
    found = re.search(r"[12]", engine.says("cgroups"))
    return int(found[0]) if found else 2


def lost(engine: Engine, what: str, failed: CommandFailed) -> TestbedError:
    """The error for something that the engine refused."""
    return TestbedError(
        f"{engine.program} {what}: {last_line(failed)}", hint=f"try it by hand: {' '.join(failed.argv)}"
    )


def last_line(failed: CommandFailed) -> str:
    """The last line of what a command said, or how it ended."""
    return next((line for line in reversed(failed.output.strip().splitlines()) if line.strip()), failed.status)

"""The kind provider: makes clusters with kind's command line, attaches to them, removes them, and sweeps what killed runs left."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from testbed import process
from testbed.errors import CommandFailed, TestbedError, UsageError
from testbed.kube.client import Kube
from testbed.kube.nodes import wait_until_usable
from testbed.progress import Progress
from testbed.providers.base import Artifacts, ClusterFinder, ClusterMaker, ClusterSpec, HostProblem
from testbed.providers.kind import checks, configuration, engine, engine_choice, engine_location, images, record
from testbed.providers.kind.cluster import KindCluster
from testbed.providers.kind.configuration import HostSettings, section_of
from testbed.providers.kind.engine import Engine
from testbed.providers.privileges import lacks_sys_resource
from testbed.providers.process_marks import MARK, mark_of, marked_processes
from testbed.state_files import DamagedState

T = TypeVar("T")

_QUOTED_ENDS = 10  # lines
# kind's controller manager runs before the nodes are Ready, and taints them. It retries that write up to five times, 0.1 to 0.2 s apart,
# so the taint may appear shortly after the node became Ready. It then stays for five seconds, until the controller's next check.
_LATE_TAINT = 1.0


class KindProvider:
    """A ClusterMaker."""

    def dispatch(self, *, maker: Callable[[ClusterMaker], T], finder: Callable[[ClusterFinder], T]) -> T:  # noqa: ARG002 - required by the protocol
        """Return `maker(self)`: this provider makes its clusters."""
        return maker(self)

    def node_facilities(self) -> Collection[str]:
        """Return nri: containerd 2 has it on. Nodes are containers without the devices of this host."""
        return ("nri",)

    def programs(self) -> Sequence[str]:
        """Return kind, if it is not on PATH, and kubectl, which is only for users and comes last."""
        return [*([] if shutil.which("kind") else ["kind"]), "kubectl"]

    def preflight(self, spec: ClusterSpec) -> list[HostProblem]:
        """Return what will not work: the engine, its permissions, the host's limits. Raise UsageError for a wrong patch or node image."""
        checks.refuse(spec)
        using = engine_choice.choose()
        found = engine_choice.problems(using) or checks.missing_capability(using)
        if not found:
            checks.refuse_image(using, spec)
        return found or [*checks.old_kind(), *checks.inotify_instances(using, spec.nodes)]

    def privileged_access(self) -> str:
        """Return what a container with access to its node can do."""
        return "it can act as root where the container engine runs, because nodes are privileged containers"

    def create(
        self, name: str, spec: ClusterSpec, artifacts: Artifacts, state: Path, progress: Progress
    ) -> KindCluster:
        """Create the cluster. If that fails, its nodes stay until `delete`, so that their logs can be collected."""
        using, kind = engine_choice.choose(), _kind(artifacts)
        cluster = KindCluster(name, state, record.kind_name(name, state), kind, using)
        if using.containers(cluster.kind_name):
            raise UsageError(
                f"kind cluster {cluster.kind_name} exists already",
                hint=f"kind delete cluster --name {cluster.kind_name}",
            )
        record.save(cluster)
        config = _write_configuration(cluster, spec, artifacts, progress)
        with progress.step(f"kind: control plane and {spec.nodes} nodes") as step:
            _run_kind(cluster, config, step.note)
            step.note("")
        with progress.step("images loaded into the nodes, nodes ready"):
            # kind's nodes have their own sandbox image.
            cluster.load_images(
                [each for each in artifacts.images if artifacts.sandbox_image not in images.images_in(each)]
            )
            names = [node.name for node in cluster.nodes()]
            wait_until_usable(Kube(cluster.kubeconfig), names, hint=f"dra-testbed logs --name {name}", hold=_LATE_TAINT)
        return cluster

    def attach(self, name: str, state: Path) -> KindCluster | None:
        """Return the cluster that was made in this folder, also an incomplete one; None if there is none."""
        return record.load(name, state)

    def delete(self, name: str, state: Path) -> None:
        """Kill a kind that is still creating it, then remove its containers and files, as far as they still exist."""
        process.kill_all(pid for pid, folder in marked_processes().items() if folder == state)
        try:
            cluster = self.attach(name, state)
            made = (cluster.engine, cluster.kind_name) if cluster else None
        except DamagedState:  # the cluster has the name that this folder gives it
            made = (engine_choice.choose(), record.kind_name(name, state))
        if made:
            _remove_containers(*made)
        if state.exists():
            shutil.rmtree(state)

    def sweep(self, in_use: Callable[[Path], bool]) -> list[str]:
        """Remove the clusters that were made from this host and whose folder no testbed uses. Other users may share the engine."""
        using = engine_choice.choose()
        if engine_choice.problems(using):
            return []
        containers = using.containers()
        orphans = {
            cluster for container, cluster in containers.items() if _is_orphan(using, container, cluster, in_use)
        }
        for cluster in orphans:
            _remove_containers(using, cluster)
        return [f"kind cluster {cluster}" for cluster in sorted(orphans)]


def _kind(artifacts: Artifacts) -> Path:
    found = artifacts.programs.get("kind") or shutil.which("kind")
    if not found:
        raise TestbedError("kind has disappeared from PATH", hint="run the command again: it then uses its own kind")
    return Path(found)


def _write_configuration(cluster: KindCluster, spec: ClusterSpec, artifacts: Artifacts, progress: Progress) -> Path:
    given, published = section_of(spec).node_image, artifacts.node_images
    image = images.node_image(cluster.engine, published[spec.kubernetes], given, progress)
    older = images.node_image(cluster.engine, published[spec.kubelet], None, progress) if spec.kubelet else image
    shared = cluster.folder / "shared"
    engine_location.refuse(cluster.engine, shared, image)
    for name, content in configuration.mirror_files(section_of(spec).registry_mirrors).items():
        (shared / "certs.d" / name).parent.mkdir(parents=True, exist_ok=True)
        (shared / "certs.d" / name).write_text(content)
    host = HostSettings(image, older, shared, engine.cgroup_version(cluster.engine) == 1, lacks_sys_resource())
    config = cluster.folder / "kind.yaml"
    config.write_text(configuration.render(cluster.kind_name, spec, host))
    return config


def _run_kind(cluster: KindCluster, config: Path, note: Callable[[str], None]) -> None:
    """Run `kind create cluster`, with its output in kind.log. If it fails, the nodes are retained for their logs."""
    argv = ["create", "cluster", "--config", str(config), "--kubeconfig", str(cluster.kubeconfig), "--retain"]
    marked = {**cluster.engine.environment, MARK: mark_of(cluster.folder)}
    log = cluster.folder / "kind.log"
    try:
        with log.open("w") as kept, process.stream([cluster.kind, *argv], env=marked) as lines:
            for line in lines:
                kept.write(line + "\n")
                kept.flush()
                if line.startswith((" •", " ✓")):  # the steps; all other lines are advice for the user
                    note(line.strip(" •…"))
    except CommandFailed as failed:
        raise TestbedError(
            f"kind could not create the cluster: {_reason(failed)}", hint="see kind.log for its full output"
        ) from failed
    cluster.kubeconfig.chmod(0o600)


def _reason(failed: CommandFailed) -> str:
    """Return kind's output from its last error on, because the cause is often below it; of a long output only both ends."""
    said = [line for line in failed.output.splitlines() if line.strip()]
    errors = [number for number, line in enumerate(said) if line.startswith("ERROR")]
    quoted = said[errors[-1] :] if errors else said[-1:] or [failed.status]
    if len(quoted) > 2 * _QUOTED_ENDS:
        quoted = [*quoted[:_QUOTED_ENDS], "…", *quoted[-_QUOTED_ENDS:]]
    return "\n  ".join(quoted)


def _is_orphan(using: Engine, container: str, cluster: str, in_use: Callable[[Path], bool]) -> bool:
    shared = using.mounted_from(container, configuration.SHARED)
    return shared is not None and record.made_from_here(cluster, shared.parent) and not in_use(shared.parent)


def _remove_containers(using: Engine, cluster: str) -> None:
    try:
        using.remove(cluster)
    except CommandFailed as failed:
        raise engine.engine_failed(using, f"cannot remove the nodes of {cluster}", failed) from failed

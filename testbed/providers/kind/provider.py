"""The kind provider itself: makes a cluster through kind's command line, finds it again, removes what is left after any crash."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed import process
from testbed.errors import CommandFailed, TestbedError, UsageError
from testbed.kube.client import Kube
from testbed.kube.nodes import wait_until_usable
from testbed.progress import Progress
from testbed.providers.base import ClusterSpec, Problem
from testbed.providers.kind import checks, configuration, engine, engine_choice, engine_location, images, record
from testbed.providers.kind.cluster import KindCluster
from testbed.providers.kind.configuration import Surroundings, section_of
from testbed.providers.kind.engine import Engine
from testbed.providers.privileges import lacks_sys_resource
from testbed.providers.process_marks import MARK, mark_of, marked_processes

_QUOTED_ENDS = 10  # lines
# kind's controllers run before its nodes are Ready, and taint them for that. The taint is tried to write up to five times, 0.1 to 0.2 s
# apart, so it may come when the node has been Ready for a moment; it stays until the controller looks again, for five seconds.
_LATE_TAINT = 1.0


class KindProvider:
    """Fulfils Provider."""

    def programs(self) -> Sequence[str]:
        """kind, where the user has none; kubectl is only for people and comes last."""
        return [*([] if shutil.which("kind") else ["kind"]), "kubectl"]

    def preflight(self, spec: ClusterSpec) -> list[Problem]:
        """What will not work here: the engine, its rights, what the patch file says, and the node image that was given."""
        checks.refuse(spec)
        using = engine_choice.chosen()
        found = engine_choice.problems(using) or checks.privileges(using)
        if not found:
            checks.refuse_image(using, spec)
        return found or [*checks.old_kind(), *checks.instances(using, spec.nodes)]

    def create(self, name: str, spec: ClusterSpec, state: Path, progress: Progress) -> KindCluster:
        """Make the cluster. On failure its nodes stay until `delete`, so that their logs can be kept."""
        using, kind = engine_choice.chosen(), _kind(spec)
        cluster = KindCluster(name, state, record.kind_name(name, state), kind, using)
        if using.containers(cluster.kind_name):
            raise UsageError(
                f"a kind cluster {cluster.kind_name} is there already",
                hint=f"kind delete cluster --name {cluster.kind_name}",
            )
        record.remember(cluster)
        config = _write_configuration(cluster, spec, progress)
        with progress.step(f"kind: control plane and {spec.nodes} nodes") as step:
            _run_kind(cluster, config, step.note)
            step.note("")
        with progress.step("images loaded into the nodes, nodes ready"):
            cluster.load_images([archive for archive in spec.images if not _is_sandbox(archive, spec)])
            names = [node.name for node in cluster.nodes()]
            wait_until_usable(Kube(cluster.kubeconfig), names, hint=f"dra-testbed logs --name {name}", hold=_LATE_TAINT)
        return cluster

    def attach(self, name: str, state: Path) -> KindCluster | None:
        """The cluster of that name, also a half-made one."""
        return record.recall(name, state)

    def delete(self, name: str, state: Path) -> None:
        """End a kind that still works on it, then remove its containers and files. What is gone already is fine."""
        process.kill_all(pid for pid, folder in marked_processes().items() if folder == state)
        cluster = self.attach(name, state)
        if cluster:
            _removed(cluster.engine, cluster.kind_name)
        if state.exists():
            shutil.rmtree(state)

    def sweep(self, in_use: Callable[[Path], bool]) -> list[str]:
        """Remove clusters that were made from here, when no testbed uses their folder any more. Others may share the engine."""
        using = engine_choice.chosen()
        if engine_choice.problems(using):
            return []
        containers = using.containers()
        orphans = {cluster for container, cluster in containers.items() if _orphan(using, container, cluster, in_use)}
        for cluster in orphans:
            _removed(using, cluster)
        return [f"kind cluster {cluster}" for cluster in sorted(orphans)]


def _kind(spec: ClusterSpec) -> Path:
    found = spec.programs.get("kind") or shutil.which("kind")
    if not found:
        raise TestbedError("kind was on PATH a moment ago, and is gone")
    return Path(found)


def _write_configuration(cluster: KindCluster, spec: ClusterSpec, progress: Progress) -> Path:
    if spec.node_image is None:
        raise TestbedError("kind was not told what nodes are made of")
    given = section_of(spec).node_image
    image = images.for_nodes(cluster.engine, spec.node_image(spec.kubernetes), given, progress)
    older = images.for_nodes(cluster.engine, spec.node_image(spec.kubelet), None, progress) if spec.kubelet else image
    shared = cluster.folder / "shared"
    engine_location.refuse(cluster.engine, shared, image)
    for name, content in configuration.mirror_files(section_of(spec).registry_mirrors).items():
        (shared / "certs.d" / name).parent.mkdir(parents=True, exist_ok=True)
        (shared / "certs.d" / name).write_text(content)
    around = Surroundings(image, older, shared, engine.cgroup_version(cluster.engine) == 1, lacks_sys_resource())
    config = cluster.folder / "kind.yaml"
    config.write_text(configuration.rendered(cluster.kind_name, spec, around))
    return config


def _run_kind(cluster: KindCluster, config: Path, note: Callable[[str], None]) -> None:
    """The output goes into a log as it comes; nodes of a failed attempt are retained for their logs."""
    words = ["create", "cluster", "--config", str(config), "--kubeconfig", str(cluster.kubeconfig), "--retain"]
    marked = {**cluster.engine.environment, MARK: mark_of(cluster.folder)}
    log = cluster.folder / "kind.log"
    try:
        with log.open("w") as kept, process.stream([cluster.kind, *words], env=marked) as lines:
            for line in lines:
                kept.write(line + "\n")
                kept.flush()
                if line.startswith((" •", " ✓")):  # steps; all else is a chat about what to do next
                    note(line.strip(" •…"))
    except CommandFailed as failed:
        raise TestbedError(
            f"kind could not make the cluster: {_reason(failed)}", hint="kind.log is what it said"
        ) from failed
    cluster.kubeconfig.chmod(0o600)


def _reason(failed: CommandFailed) -> str:
    """All that kind says from its last error on, as the line that matters is often below it; of long outputs both ends."""
    said = [line for line in failed.output.splitlines() if line.strip()]
    errors = [number for number, line in enumerate(said) if line.startswith("ERROR")]
    quoted = said[errors[-1] :] if errors else said[-1:] or [failed.status]
    if len(quoted) > 2 * _QUOTED_ENDS:
        quoted = [*quoted[:_QUOTED_ENDS], "…", *quoted[-_QUOTED_ENDS:]]
    return "\n  ".join(quoted)


def _is_sandbox(archive: Path, spec: ClusterSpec) -> bool:
    """Nodes of kind bring their own."""
    return spec.sandbox_image in images.named(archive)


def _orphan(using: Engine, container: str, cluster: str, in_use: Callable[[Path], bool]) -> bool:
    shared = using.mounted_from(container, configuration.SHARED)
    return shared is not None and record.made_from_here(cluster, shared.parent) and not in_use(shared.parent)


def _removed(using: Engine, cluster: str) -> None:
    try:
        using.remove(cluster)
    except CommandFailed as failed:
        raise engine.lost(using, f"cannot remove the nodes of {cluster}", failed) from failed

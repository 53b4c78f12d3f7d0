"""The pods that DaemonSets, Deployments and other workloads create."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from testbed.errors import WaitTimeout
from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.observing import queries
from testbed.vocabulary.observing.diagnosis import describe_unready
from testbed.vocabulary.observing.observation import Diagnosis, failure
from testbed.vocabulary.pods.pod import Pod
from testbed.vocabulary.pods.pod_list import Pods
from testbed.vocabulary.world import World
from testbed.waiting import NotYet, eventually


@dataclass(frozen=True)
class DaemonSet:
    """A DaemonSet of the scenario. The label `app` of its pods has its name."""

    world: World
    namespace: str
    name: str

    def pods_on(self, nodes: Iterable[str]) -> Pods:
        """Wait until there is a bound pod on each of these nodes, and return the pods in the order of the nodes' names."""
        wanted = sorted(nodes)
        expected = f"a pod of daemonset {self.name} on each of {', '.join(wanted)}"
        try:
            placed = eventually(lambda: self._placed(wanted), expected, budgets.CREATED, longest_pause=0.1)
        except WaitTimeout as late:
            unready = describe_unready(
                node for node in self.world.kube.list("v1", "Node") if node["metadata"]["name"] in wanted
            )
            cause = unready or queries.held_by_others(self.world)
            raise failure(
                expected, late.last_seen, late.budget, Diagnosis(cause or _CAUSE, by_environment=bool(cause))
            ) from late
        return Pods(Pod(self.world, self.namespace, placed[node]) for node in wanted)

    def _placed(self, wanted: list[str]) -> dict[str, str]:
        pods = self.world.kube.list("v1", "Pod", self.namespace, labelSelector=f"app={self.name}")
        placed = {_node(pod): pod["metadata"]["name"] for pod in pods}
        missing = [node for node in wanted if node not in placed]
        if missing:
            raise NotYet(f"no pod is bound to {', '.join(missing)}; the DaemonSet has {len(pods)} pods")
        return placed


def pods_of(world: World, namespace: str, owner: str, count: int) -> Pods:
    """Wait until a workload has `count` pods that are not being deleted, and return them sorted by name. `owner` is their label `app`."""

    def made() -> list[str]:
        found = world.kube.list("v1", "Pod", namespace, labelSelector=f"app={owner}")
        names = [each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"]]
        if len(names) != count:
            raise NotYet(f"there are {len(names)} pods")
        return sorted(names)

    expected = f"{count} pods of workload {owner}"
    try:
        names = eventually(made, expected, budgets.CREATED, longest_pause=0.1)
    except WaitTimeout as late:
        cause = Diagnosis(
            "the controller manager did not create them; is their label app the name of the workload?",
            by_environment=True,
        )
        raise failure(expected, late.last_seen, late.budget, cause) from late
    return Pods(Pod(world, namespace, name) for name in names)


_CAUSE = (
    "the claim of the missing pod was not allocated on that node; does the driver still publish free devices there?"
)


def _node(pod: Object) -> str:
    return str(pod["spec"].get("nodeName", ""))

"""The budgets of all waits in the vocabulary, with their reasons. `--patience` multiplies them.

They are made for slow machines and drivers. On a local testbed each wait takes a second or two.
"""

from __future__ import annotations

from dataclasses import replace

from testbed.waiting import Budget

RUN = Budget("pod runs", 60, "the kubelet gives a driver 45 s to prepare; scheduling and container start come on top")
MAY_RUN = Budget("pod may run", 15, "a kubelet that can start a pod does so within seconds after a sync")
SUCCEED = Budget("pod succeeds", 90, "the time until a pod runs, and the time that its work takes")
CREATED = Budget("object is created", 20, "controllers create pods and generated claims within a second")
ALLOCATED = Budget("claim is allocated", 30, "the scheduler retries with a back-off of up to 10 s")
PODS_GONE = Budget("pods are gone", 60, "grace period, then unprepare; a driver that hangs in unprepare blocks the pod")
CLAIMS_GONE = Budget("claims are gone", 30, "the controller manager removes the reservation once the pods are gone")
RESTARTED = Budget("container restarts", 60, "the first restart is immediate, the second has a back-off of 10 s")
UNSCHEDULABLE = Budget("pod is unschedulable", 30, "the scheduler's first attempt may follow a back-off of 10 s")
EVENT = Budget("event is reported", 45, "the kubelet and the controllers report a failure at their first attempt")
POD_GONE = Budget("pod is gone", 60, "grace period, then unprepare; a driver that hangs in unprepare blocks the pod")
RELEASED = Budget("claim is released", 30, "the controller manager reacts to an ended pod within a second")
STAYS = Budget("state stays", 2, "a component that would change the state does so within a second")
STAYS_UNBOUND = Budget("pod stays unbound", 7, "the scheduler checks binding conditions every 5 s", minimum=6)
TAINT_RULE_OBSERVED = Budget(
    "taint rule is observed", 30, "the controller manager first reports the status of a new rule"
)
HEALTH = Budget(
    "health is reported",
    45,
    "a kubelet that lost the driver's health stream reconnects every 5 s, then writes the status",
)
QUOTA_COUNTED = Budget("quota is counted", 30, "the controller counts within a second, or at its next resync")
API_SERVER_ANSWERED = Budget("API server answers", 30, "the API server gives up waiting for its storage after 10 s")
POOL = Budget("pool is complete", 15, "a driver that publishes a pool again writes one slice after the other")
CLUSTER_RESTORED = Budget(
    "cluster is restored", 120, "a restarted node is Ready within a minute, its driver soon after"
)
NODE_READY = Budget("node is ready", 90, "a kubelet reports at least every 10 s and syncs its pods every second")
DRIVER_PODS = Budget(
    "driver's pods", 90, "a grace period of 30 s is usual; an update of the driver has this budget per node"
)
RECOVERED = Budget(
    "pod recovers", 120, "a kubelet that lost a pod has its claims unprepared within a minute; then the pod has to run"
)
REPUBLISHED = Budget(
    "slices are published again", 60, "upstream's library for drivers waits 30 s before it restores deleted slices"
)
RETURNED = Budget(
    "returned devices are published",
    75,
    "a driver that removes devices in use from its slices may find them again only when it next scans the hardware",
)
SLICES_DELETED = Budget(
    "slices are deleted",
    150,
    "a kubelet waits 30 s for a stopped driver, and retries the deletion if the API server rejects it",
)


def repeated(budget: Budget, times: int) -> Budget:
    """Return the budget for something that happens several times, one after another."""
    return replace(budget, seconds=budget.seconds * max(1, times))

"""Every wait of the suites, how long it may take and why so long. `--patience` stretches them all alike.

The budgets are for slow machines and drivers; on a local testbed each of these takes a second or two.
"""

from __future__ import annotations

from dataclasses import replace

from testbed.waiting import Budget

RUN = Budget("pod runs", 60, "the kubelet gives a driver 45 s to prepare; scheduling and start come on top")
SUCCEED = Budget("pod succeeds", 90, "as long as a pod needs to run, and its work")
CREATED = Budget("object is made", 20, "controllers make pods and claims from templates within a second")
ALLOCATED = Budget("claim is allocated", 30, "the scheduler retries what does not fit with a back-off of up to 10 s")
PODS_GONE = Budget("pods gone", 60, "grace period, then unprepare: a driver that hangs in it holds the pod for ever")
CLAIMS_GONE = Budget("claims gone", 30, "the controller manager takes the reservation back once the pods are gone")
RESTARTED = Budget("container runs again", 60, "the first restart comes at once; one more would wait 10 s")
UNSCHEDULABLE = Budget(
    "scheduler refuses", 30, "it says so at its first attempt; an attempt may come after a back-off of 10 s"
)
EVENT = Budget("event", 45, "the kubelet and the controllers say what is wrong at their first attempt")
POD_GONE = Budget("pod gone", 60, "grace period, then unprepare: a driver that hangs in it holds the pod for ever")
RELEASED = Budget("claim released", 30, "the controller manager acts within a second on a pod that has ended")
STAYS = Budget("stays so", 2, "whoever could change it acts within a second; a second one makes sure")
STAYS_UNBOUND = Budget("stays unbound", 7, "the scheduler looks at binding conditions every 5 s", minimum=6)
TAINT_RULE_OBSERVED = Budget(
    "rule noticed", 30, "the controller manager writes what comes of a new rule before it does anything else"
)
HEALTH = Budget(
    "health in the status", 45, "a kubelet that lost the driver's stream asks again every 5 s, and writes then"
)
QUOTA_COUNTED = Budget("quota counted", 30, "the controller counts within a second, and again only at its next round")
API_SERVER_ANSWERED = Budget(
    "API server answers", 30, "it gives up a request of its own after 10 s of waiting for its store"
)
POOL = Budget("pool complete", 15, "a driver that writes a pool anew makes slice after slice")
CLUSTER_RESTORED = Budget(
    "cluster as before", 120, "a node that comes back is Ready within a minute, and its driver after it"
)
NODE_READY = Budget(
    "node ready", 90, "a kubelet reports every 10 s at the latest, and looks for its pods once in a second"
)
DRIVER_PODS = Budget(
    "driver's pods",
    90,
    "a grace period of 30 s is usual; an update, which goes node after node, has this for each of them",
)
RECOVERED = Budget(
    "pod recovers", 120, "a kubelet that has lost a pod has its claims unprepared within a minute; then as long as RUN"
)
REPUBLISHED = Budget(
    "published again", 60, "upstream's library for drivers waits 30 s before it repairs what was deleted"
)
SLICES_DELETED = Budget(
    "slices deleted",
    150,
    "a kubelet waits 30 s for a driver that has gone, whatever the patience, and tries again what the API server refuses",
)


def repeated(budget: Budget, times: int) -> Budget:
    """For what has to come several times, one after another."""
    return replace(budget, seconds=budget.seconds * max(1, times))


ALL = (
    *(RUN, SUCCEED, RESTARTED, UNSCHEDULABLE, EVENT, STAYS, STAYS_UNBOUND, TAINT_RULE_OBSERVED),
    HEALTH,
    *(
        CREATED,
        ALLOCATED,
        RELEASED,
        QUOTA_COUNTED,
        POD_GONE,
        PODS_GONE,
        CLAIMS_GONE,
        API_SERVER_ANSWERED,
        POOL,
        CLUSTER_RESTORED,
    ),
    *(NODE_READY, DRIVER_PODS, REPUBLISHED, RECOVERED, SLICES_DELETED),
)

"""Every wait of the suites, how long it may take and why so long. `--patience` stretches them all alike.

The budgets are for slow machines and drivers; on a local testbed each of these takes a second or two.
"""

from __future__ import annotations

from testbed.waiting import Budget

RUN = Budget("pod runs", 60, "the kubelet gives a driver 45 s to prepare; scheduling and start come on top")
SUCCEED = Budget("pod succeeds", 90, "as long as a pod needs to run, and its work")
CREATED = Budget("object is made", 20, "controllers make pods and claims from templates within a second")
ALLOCATED = Budget("claim is allocated", 30, "the scheduler retries what does not fit with a back-off of up to 10 s")
PODS_GONE = Budget("pods gone", 60, "grace period, then unprepare: a driver that hangs in it holds the pod for ever")
CLAIMS_GONE = Budget("claims gone", 30, "the controller manager takes the reservation back once the pods are gone")

ALL = (RUN, SUCCEED, CREATED, ALLOCATED, PODS_GONE, CLAIMS_GONE)

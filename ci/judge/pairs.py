"""The table of pairs: a fault, and a driver that is correct or wrong, with the verdicts that its requirements may have. For `running`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from ci.judge.faults import Fault, ForeignSlices, Freeze, Kill, LateWatches, LostEvents
from ci.judge.moments import POD_ENDS, POD_EXISTS, POD_RUNS, Moment

Verdicts = frozenset[str]
JUDGED_RIGHT: Verdicts = frozenset({"pass", "flaky"})
NEVER_FAIL: Verdicts = JUDGED_RIGHT | {"error", "timeout", "blocked"}
NEVER_PASS: Verdicts = frozenset({"fail", "error", "timeout", "blocked"})
_CHANGES = ("MODIFIED", "DELETED")
_ALL = ("ADDED", *_CHANGES, "BOOKMARK")


@dataclass(frozen=True)
class Pair:
    """A fault in the test of a requirement. `expected` are the requirements that run, each with the verdicts that it may have.

    `driver` is a mutant of the fake driver; '' is the correct one.
    """

    name: str
    fault: Fault
    expected: Mapping[str, Verdicts]
    why: str
    when: Moment | None = None  # None: during the whole run
    driver: str = ""
    patience: float = 0.5
    fast: bool = field(default=False, compare=False)  # one of those that .ci/run runs

    @property
    def keyword(self) -> str:
        """Return the -k expression of its requirements."""
        return " or ".join(sorted(self.expected))

    @property
    def digest(self) -> str:
        """Return eight hexadecimal digits that change with the pair, except for its reason."""
        expected = {key: sorted(verdicts) for key, verdicts in sorted(self.expected.items())}
        content = (self.name, repr(self.fault), repr(self.when), expected, self.driver, self.patience)
        return hashlib.sha256(repr(content).encode()).hexdigest()[:8]


_KILLED = (
    Pair(
        "scheduler-killed",
        Kill("kube-scheduler"),
        {"CLAIM-001": NEVER_FAIL, "SHARE-001": JUDGED_RIGHT},
        "The pod is not scheduled. The scheduler runs again for the next test.",
        when=Moment("CLAIM-001"),
    ),
    Pair(
        "controller-manager-killed",
        Kill("kube-controller-manager"),
        {"CLAIM-005": NEVER_FAIL, "SHARE-001": JUDGED_RIGHT},
        "The Deployment gets no pods. The controller manager runs again for the next test.",
        when=Moment("CLAIM-005"),
    ),
    Pair(
        "kubelet-killed",
        Kill("kubelet"),
        {"CLAIM-010": NEVER_FAIL, "SHARE-001": JUDGED_RIGHT},
        "The driver is not asked to prepare the claim. The kubelets run again for the next test.",
        when=Moment("CLAIM-010"),
    ),
    Pair(
        "kubelet-killed-while-a-pod-ends",
        Kill("kubelet"),
        {"CLAIM-003": NEVER_FAIL, "SHARE-001": JUDGED_RIGHT},
        "The driver is not asked to unprepare the claim.",
        when=Moment("CLAIM-003", POD_ENDS),
    ),
    Pair(
        "containerd-killed",
        Kill("containerd"),
        {"CLAIM-011": NEVER_FAIL, "SHARE-001": JUDGED_RIGHT},
        "The claim is prepared, but containers cannot be created.",
        when=Moment("CLAIM-011", POD_EXISTS),
    ),
    Pair(
        "api-server-killed",
        Kill("kube-apiserver"),
        {"CLAIM-010": NEVER_FAIL, "SHARE-001": JUDGED_RIGHT},
        "Nothing can be observed. The API server runs again for the next test.",
        when=Moment("CLAIM-010", POD_EXISTS),
    ),
    Pair(
        "etcd-killed",
        Kill("etcd"),
        {"CLAIM-010": NEVER_FAIL, "SHARE-001": JUDGED_RIGHT},
        "The API server can neither read nor write. etcd runs again for the next test.",
        when=Moment("CLAIM-010", POD_EXISTS),
    ),
    Pair(
        "kubelet-killed-in-a-disruptive-test",
        Kill("kubelet"),
        {"LIFE-020": NEVER_FAIL, "LIFE-021": JUDGED_RIGHT},
        "The restarted driver cannot register. The node is repaired, so the next disruptive test is not blocked.",
        when=Moment("LIFE-020", POD_RUNS),
    ),
)
_FROZEN = (
    Pair(
        "scheduler-frozen",
        Freeze("kube-scheduler", 5),
        {"CLAIM-001": JUDGED_RIGHT},
        "The test waits longer for its pod.",
        when=Moment("CLAIM-001"),
        fast=True,
    ),
    Pair(
        "controller-manager-frozen",
        Freeze("kube-controller-manager", 5),
        {"CLAIM-003": JUDGED_RIGHT},
        "The test waits longer for the end of the claim.",
        when=Moment("CLAIM-003", POD_ENDS),
    ),
    Pair(
        "kubelet-frozen",
        Freeze("kubelet", 10),
        {"PREP-006": JUDGED_RIGHT},
        "The test waits longer for its pods.",
        when=Moment("PREP-006", POD_EXISTS),
    ),
    Pair(
        "containerd-frozen",
        Freeze("containerd", 10),
        {"CLAIM-011": JUDGED_RIGHT},
        "The test waits longer for its pod.",
        when=Moment("CLAIM-011", POD_EXISTS),
    ),
    Pair(
        "api-server-frozen",
        Freeze("kube-apiserver", 20),
        {"CLAIM-010": NEVER_FAIL, "SHARE-001": JUDGED_RIGHT},
        "Requests time out after 10 s.",
        when=Moment("CLAIM-010", POD_EXISTS),
    ),
    Pair(
        "etcd-frozen",
        Freeze("etcd", 15),
        {"CLAIM-001": NEVER_FAIL, "SHARE-001": JUDGED_RIGHT},
        "The API server refuses requests after 10 s.",
        when=Moment("CLAIM-001", POD_EXISTS),
    ),
)
_WATCHES = (
    Pair(
        "late-watches",
        LateWatches(1),
        dict.fromkeys(("CLAIM-001", "CLAIM-003", "HOTPLUG-001", "PREP-003"), JUDGED_RIGHT),
        "The states come late, but they come.",
    ),
    Pair(
        "lost-changes",
        LostEvents(_CHANGES),
        dict.fromkeys(("CLAIM-001", "CLAIM-003", "HOTPLUG-001"), JUDGED_RIGHT),
        "Each watch begins with the current state.",
        fast=True,
    ),
    Pair(
        "lost-events",
        LostEvents(_ALL),
        dict.fromkeys(("CLAIM-001", "CLAIM-003", "HOTPLUG-001", "PREP-003"), NEVER_FAIL),
        "Watches show nothing, but the objects are there.",
    ),
    Pair(
        "foreign-slices",
        ForeignSlices(),
        dict.fromkeys(("CLAIM-001", "SLICE-001", "SLICE-002", "SLICE-004"), JUDGED_RIGHT),
        "Slices of other drivers are not the driver's.",
    ),
)
_WRONG = (
    Pair(
        "scheduler-frozen-no-env",
        Freeze("kube-scheduler", 5),
        {"CLAIM-001": NEVER_PASS},
        "The pod runs later, without its devices.",
        when=Moment("CLAIM-001"),
        driver="no-env",
    ),
    Pair(
        "lost-changes-no-env",
        LostEvents(_CHANGES),
        {"CLAIM-010": NEVER_PASS},
        "What a container sees does not come from a watch.",
        driver="no-env",
        fast=True,
    ),
    Pair(
        "kubelet-frozen-answer-without-request-names",
        Freeze("kubelet", 5),
        {"CLAIM-013": NEVER_PASS},
        "The pod runs later, with devices of other requests.",
        when=Moment("CLAIM-013", POD_EXISTS),
        driver="answer-without-request-names",
    ),
    Pair(
        "kubelet-killed-never-give-back",
        Kill("kubelet"),
        {"UNPREP-001": NEVER_PASS},
        "That the next pod does not run proves nothing, and that it cannot be asked does not excuse the driver.",
        when=Moment("UNPREP-001", POD_ENDS),
        driver="never-give-back",
    ),
    Pair(
        "controller-manager-killed-unprepare-fails",
        Kill("kube-controller-manager"),
        {"CLAIM-003": NEVER_PASS},
        "The pod does not end.",
        when=Moment("CLAIM-003", POD_ENDS),
        driver="unprepare-fails",
    ),
    Pair(
        "containerd-frozen-cdi-file-is-lost",
        Freeze("containerd", 5),
        {"CLAIM-009": NEVER_PASS},
        "The restarted container has no device.",
        when=Moment("CLAIM-009", POD_RUNS),
        driver="cdi-file-is-lost",
    ),
    Pair(
        "scheduler-killed-refuses-once",
        Kill("kube-scheduler"),
        {"PREP-003": NEVER_PASS},
        "The second attempt is not refused. The control pod is not scheduled, which is no refusal.",
        when=Moment("PREP-003", POD_EXISTS),
        driver="refuses-once",
    ),
    Pair(
        "lost-changes-refuses-once",
        LostEvents(_CHANGES),
        {"PREP-003": NEVER_PASS},
        "An event that was not seen is no second refusal.",
        driver="refuses-once",
    ),
    Pair(
        "late-watches-publish-once",
        LateWatches(1),
        {"HOTPLUG-003": NEVER_PASS},
        "A pool that was not seen to change is no pool that changed correctly.",
        driver="publish-once",
    ),
    Pair(
        "foreign-slices-publish-devices-twice",
        ForeignSlices(),
        {"SLICE-002": NEVER_PASS},
        "The slices of the driver itself contradict each other, too.",
        driver="publish-devices-twice",
    ),
    Pair(
        "foreign-slices-slices-count-differently",
        ForeignSlices(),
        {"SLICE-004": NEVER_PASS},
        "The slices of the driver itself contradict each other, too.",
        driver="slices-count-differently",
    ),
)
PAIRS: tuple[Pair, ...] = (*_FROZEN, *_WATCHES, *_KILLED, *_WRONG)

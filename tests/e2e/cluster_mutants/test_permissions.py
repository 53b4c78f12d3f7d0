"""Mutants of the cluster that take permissions away."""

from __future__ import annotations

from ci.mutants.activation import cluster_mutant
from testbed.errors import ApiError
from testbed.kube.client import Kube
from testbed.waiting import eventually_true
from tests.e2e.api_server import UP
from tests.e2e.cluster_mutants.objects import (
    resource,
)


def test_kubelets_may_not_delete_slices_but_others_may(kube: Kube) -> None:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example", "nodeName": "worker", "pool": pool, "devices": [{"name": "x"}]}
    made = kube.apply(resource("ResourceSlice", spec))
    with cluster_mutant(kube, "slices-outlive-their-driver"):
        assert eventually_true(lambda: "mutant slices-outlive-their-driver" in refusal_of_a_kubelets_delete(kube), UP)
        kube.delete(made)
    kube.apply(resource("ResourceSlice", spec))
    assert refusal_of_a_kubelets_delete(kube) == ""


def refusal_of_a_kubelets_delete(kube: Kube) -> str:
    """Return the message that refuses a kubelet to delete the slices of its node, or an empty string if it may."""
    query = {"fieldSelector": "spec.nodeName=worker", "dryRun": "All"}
    kubelet = [("Impersonate-User", "system:node:worker"), ("Impersonate-Group", "system:masters")]
    try:
        kube.request("DELETE", "/apis/resource.k8s.io/v1/resourceslices", query=query, headers=kubelet)
    except ApiError as refused:
        return refused.message
    return ""

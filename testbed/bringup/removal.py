"""Removes what testbeds created in an existing cluster, found by label, in an order that lets drivers unprepare. For `down` and `sweep`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from testbed.bringup.created_kinds import CreatedKinds
from testbed.drivers.changed_daemonsets import undo_all
from testbed.drivers.shared_objects import SHARED_KINDS, is_managed_by, release_shared
from testbed.errors import ApiError, DriverFailed, TestbedError
from testbed.kube.client import Kube, Object
from testbed.kube.discovery import LabelledObjects, find_labelled
from testbed.kube.ownership import DRIVER, REQUIREMENT, Owner
from testbed.progress import Progress
from testbed.vocabulary.ledger import BEFORE_PODS, Ledger
from testbed.waiting import Budget, NotYet, eventually

_GONE = Budget("objects gone", 120, "a namespace waits for everything in it; pods get their grace period")


def remove_all(
    kube: Kube, owner: Owner, kinds: CreatedKinds, drivers: Collection[str], progress: Progress
) -> list[str]:
    """Remove everything that this testbed created, and nothing else; return descriptions of it. It may be called twice.

    `drivers` are the drivers that the testbed has installed, according to its record.
    Raise an error before anything is removed if some of the kinds that the testbed may have created cannot be listed.
    """
    found = find_labelled(kube, owner.selector)
    _refuse_if_unlisted(found, kinds)
    if found.forbidden or found.unavailable:
        unlisted = ", ".join([*(each.plural for each in found.forbidden), *found.unavailable])
        progress.say(f"note: not listed, but the testbed creates none of them: {unlisted}")
    undo_all(kube, owner)  # first: pods of a killed test end only while the driver runs on their nodes
    removed = remove(kube, found.objects, drivers, progress)
    release(kube, owner)
    return removed


def remove(kube: Kube, objects: Sequence[Object], drivers: Collection[str], progress: Progress) -> list[str]:
    """Remove these objects: those of tests while the driver still runs, then workloads, then the rest, namespaces last.

    Also remove the ResourceSlices of those `drivers` that these objects install. The objects alone decide about no ResourceSlice:
    a user of the cluster with one namespace can create an object with any labels and annotations there.
    """
    tests = {_name(each) for each in objects if each["kind"] == "Namespace" and REQUIREMENT in _labels(each)}
    for namespace in sorted(tests):
        _clean_up_test(kube, namespace, [each for each in objects if _namespace(each) == namespace])
    rest = [each for each in objects if each["kind"] != "Namespace" and _namespace(each) not in tests]
    workloads = [each for each in rest if each["kind"] in (*BEFORE_PODS, "Pod")]
    others = [each for each in rest if each not in workloads]
    namespaces = [each for each in objects if each["kind"] == "Namespace"]
    _delete(kube, workloads)
    named = {driver for each in objects if (driver := _annotations(each).get(DRIVER))}
    _delete_slices(kube, named & set(drivers))
    for driver in sorted(named - set(drivers)):
        progress.say(
            f"note: no ResourceSlice of driver {driver!r:.100} is deleted: "
            "no record on this host says that the testbed installed that driver"
        )
    for group in (others, namespaces):
        _delete(kube, group)
    return [describe(each) for each in objects]


def describe(each: Object) -> str:
    """Return the kind, the name and the namespace of an object."""
    namespace = _namespace(each)
    return f"{each['kind']} {_name(each)}" + (f" in namespace {namespace}" if namespace else "")


def release(kube: Kube, owner: Owner) -> None:
    """Undo the testbed's changes to objects that it did not create: the driver's manifests may name an existing namespace."""
    for kind in SHARED_KINDS:
        try:
            listed = kube.list("v1", kind)
        except ApiError as refused:
            if refused.status not in (403, 404):
                raise
            continue  # a user without permission to list them could not change one either
        for each in listed:
            if not owner.owns(each) and is_managed_by(each, owner):
                release_shared(kube, each, owner)


def _refuse_if_unlisted(found: LabelledObjects, kinds: CreatedKinds) -> None:
    refused = [f"this user may not list {each.plural}" for each in found.forbidden if kinds.include(each)]
    silent = [f"API group {each} does not answer" for each in found.unavailable if kinds.include_group(each)]
    if refused or silent:
        raise TestbedError(
            f"not all objects of the testbed can be listed, so nothing was removed: {', '.join([*refused, *silent])}",
            hint="run the command again with the permissions that `up` had, once all API groups answer; "
            "--forget leaves the objects in the cluster",
        )


def _clean_up_test(kube: Kube, namespace: str, objects: list[Object]) -> None:
    try:
        Ledger(kube, namespace, lambda each: each, objects).clean_up()
    except DriverFailed as stuck:
        raise TestbedError(
            f"the objects in test namespace {namespace} are not deleted, so the driver was not removed\n  {stuck.what}",
            hint="pods can only end while the driver runs: restart it, and run the command again",
        ) from stuck


def _delete_slices(kube: Kube, drivers: set[str]) -> None:
    """Delete the drivers' ResourceSlices. A kubelet deletes only those of drivers that had registered with it."""
    for driver in sorted(drivers):
        try:
            for each in kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver}"):
                if (each.get("spec") or {}).get("driver") == driver:  # the server may ignore the selector
                    kube.delete(each)
        except ApiError as refused:
            if refused.status not in (403, 404):
                raise


def _delete(kube: Kube, objects: Iterable[Object]) -> None:
    """Delete objects with their dependents, and wait until they are gone."""
    remaining = list(objects)
    for each in remaining:
        kube.delete(each, dependents_first=each["kind"] in BEFORE_PODS)
    if remaining:
        what = "deletion of " + ", ".join(describe(each) for each in remaining)
        eventually(lambda: _all_gone(kube, remaining), what, _GONE, longest_pause=0.2)


def _all_gone(kube: Kube, objects: list[Object]) -> None:
    for each in list(objects):
        found = kube.find(each["apiVersion"], each["kind"], _name(each), _namespace(each) or None)
        if found is None or found["metadata"].get("uid") != each["metadata"].get("uid"):
            objects.remove(each)
    if objects:
        raise NotYet("not deleted yet: " + ", ".join(describe(each) for each in objects))


def _name(each: Object) -> str:
    return str(each["metadata"]["name"])


def _namespace(each: Object) -> str:
    return "" if each["kind"] == "Namespace" else str(each["metadata"].get("namespace", ""))


def _annotations(each: Object) -> dict[str, str]:
    return each["metadata"].get("annotations") or {}


def _labels(each: Object) -> dict[str, str]:
    return each["metadata"].get("labels") or {}

"""Take out of a cluster what a testbed made in it, found by its labels, in an order that lets a driver finish. For `down` and `sweep`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testbed.bringup.created_kinds import Making
from testbed.drivers.shared_objects import SHARED_KINDS, is_managed_by, let_go
from testbed.errors import ApiError, DriverFailed, TestbedError
from testbed.kube.client import Kube, Object
from testbed.kube.discovery import Found, labelled
from testbed.kube.ownership import DRIVER, REQUIREMENT, Owner
from testbed.progress import Progress
from testbed.vocabulary.ledger import BEFORE_PODS, Ledger
from testbed.waiting import Budget, NotYet, eventually

_GONE = Budget("objects gone", 120, "a namespace ends after all that is in it; pods get their grace period")


def clear(kube: Kube, owner: Owner, making: Making, progress: Progress) -> list[str]:
    """Remove all that this testbed made and nothing else; returns what that was. Twice is fine.

    What cannot be looked at, although the testbed may have made it, is an error before anything is removed.
    """
    found = labelled(kube, owner.selector)
    _refuse_blindness(found, making)
    if found.refused or found.silent:
        unseen = ", ".join([*(each.plural for each in found.refused), *found.silent])
        progress.say(f"note: not looked at, but the testbed makes none of them: {unseen}")
    removed = remove(kube, found.objects)
    release(kube, owner)
    return removed


def remove(kube: Kube, objects: Sequence[Object]) -> list[str]:
    """Remove these objects: what tests made while their driver is there, then what makes pods, then the rest, namespaces last."""
    tests = {_name(each) for each in objects if each["kind"] == "Namespace" and REQUIREMENT in _labels(each)}
    for namespace in sorted(tests):
        _end_test(kube, namespace, [each for each in objects if _namespace(each) == namespace])
    rest = [each for each in objects if each["kind"] != "Namespace" and _namespace(each) not in tests]
    workloads = [each for each in rest if each["kind"] in (*BEFORE_PODS, "Pod")]
    others = [each for each in rest if each not in workloads]
    namespaces = [each for each in objects if each["kind"] == "Namespace"]
    _end(kube, workloads)
    _end_slices(kube, {driver for each in objects if (driver := _annotations(each).get(DRIVER))})
    for group in (others, namespaces):
        _end(kube, group)
    return [told(each) for each in objects]


def told(each: Object) -> str:
    """An object in a few words."""
    home = _namespace(each)
    return f"{each['kind']} {_name(each)}" + (f" in namespace {home}" if home else "")


def release(kube: Kube, owner: Owner) -> None:
    """Take back what was added to objects of somebody else: the driver's manifests may name a namespace that was there before."""
    for kind in SHARED_KINDS:
        try:
            there = kube.list("v1", kind)
        except ApiError as refused:
            if refused.status not in (403, 404):
                raise
            continue  # who may not list them was never let to install one
        for each in there:
            if not owner.owns(each) and is_managed_by(each, owner):
                let_go(kube, each, owner)


def _refuse_blindness(found: Found, making: Making) -> None:
    refused = [f"may not list {each.plural}" for each in found.refused if making.may_hold(each)]
    silent = [f"no answer of {each}" for each in found.silent if making.may_be_in(each)]
    if refused or silent:
        raise TestbedError(
            f"what the testbed made cannot all be seen, so nothing was removed: {', '.join([*refused, *silent])}",
            hint="with the rights that `up` had, and all API groups in service, the same command removes it; "
            "--forget leaves all of it there",
        )


def _end_test(kube: Kube, namespace: str, objects: list[Object]) -> None:
    try:
        Ledger(kube, namespace, lambda each: each, objects).clean_up()
    except DriverFailed as stuck:
        raise TestbedError(
            f"what is in test namespace {namespace} does not end, so the driver is left as it is\n  {stuck.what}",
            hint="when the driver runs again its pods can end, and the same command goes on from here",
        ) from stuck


def _end_slices(kube: Kube, drivers: set[str]) -> None:
    """What our drivers published. A kubelet wipes the slices of a driver that it knew; one that was killed too early it never knew."""
    for driver in sorted(drivers):
        try:
            for each in kube.list("resource.k8s.io/v1", "ResourceSlice", fieldSelector=f"spec.driver={driver}"):
                kube.delete(each)
        except ApiError as refused:
            if refused.status not in (403, 404):
                raise


def _end(kube: Kube, objects: Iterable[Object]) -> None:
    """Delete them, with what they have made, and wait until they are gone."""
    doomed = list(objects)
    for each in doomed:
        kube.delete(each, dependents_first=each["kind"] in BEFORE_PODS)
    if doomed:
        what = "the end of " + ", ".join(told(each) for each in doomed)
        eventually(lambda: _all_gone(kube, doomed), what, _GONE, longest_pause=0.2)


def _all_gone(kube: Kube, objects: list[Object]) -> None:
    for each in list(objects):
        found = kube.find(each["apiVersion"], each["kind"], _name(each), _namespace(each) or None)
        if found is None or found["metadata"].get("uid") != each["metadata"].get("uid"):
            objects.remove(each)
    if objects:
        raise NotYet("still there: " + ", ".join(told(each) for each in objects))


def _name(each: Object) -> str:
    return str(each["metadata"]["name"])


def _namespace(each: Object) -> str:
    return "" if each["kind"] == "Namespace" else str(each["metadata"].get("namespace", ""))


def _annotations(each: Object) -> dict[str, str]:
    return each["metadata"].get("annotations") or {}


def _labels(each: Object) -> dict[str, str]:
    return each["metadata"].get("labels") or {}

"""Take out of a cluster what a testbed made in it, found by its labels, in an order that lets a driver finish. For `down` and `sweep`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testbed.errors import DriverFailed, TestbedError
from testbed.kube.client import Kube, Object
from testbed.kube.discovery import labelled
from testbed.kube.ownership import REQUIREMENT, Owner
from testbed.vocabulary.ledger import BEFORE_PODS, Ledger
from testbed.waiting import Budget, NotYet, eventually

_GONE = Budget("objects gone", 120, "a namespace ends after all that is in it; pods get their grace period")


def clear(kube: Kube, owner: Owner) -> list[str]:
    """Remove all that this testbed made and nothing else; returns what that was. Twice is fine."""
    return remove(kube, labelled(kube, owner.selector).objects)


def remove(kube: Kube, objects: Sequence[Object]) -> list[str]:
    """Remove these objects: what tests made while their driver is there, then what makes pods, then the rest, namespaces last."""
    tests = {_name(each) for each in objects if each["kind"] == "Namespace" and REQUIREMENT in _labels(each)}
    for namespace in sorted(tests):
        _end_test(kube, namespace, [each for each in objects if _namespace(each) == namespace])
    rest = [each for each in objects if each["kind"] != "Namespace" and _namespace(each) not in tests]
    workloads = [each for each in rest if each["kind"] in (*BEFORE_PODS, "Pod")]
    others = [each for each in rest if each not in workloads]
    namespaces = [each for each in objects if each["kind"] == "Namespace"]
    for group in (workloads, others, namespaces):
        _end(kube, group)
    return [told(each) for each in objects]


def told(each: Object) -> str:
    """An object in a few words."""
    home = _namespace(each)
    return f"{each['kind']} {_name(each)}" + (f" in namespace {home}" if home else "")


def _end_test(kube: Kube, namespace: str, objects: list[Object]) -> None:
    try:
        Ledger(kube, namespace, lambda each: each, objects).clean_up()
    except DriverFailed as stuck:
        raise TestbedError(
            f"what is in test namespace {namespace} does not end, so the driver is left as it is\n  {stuck.what}",
            hint="when the driver runs again its pods can end, and the same command goes on from here",
        ) from stuck


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


def _labels(each: Object) -> dict[str, str]:
    return each["metadata"].get("labels") or {}

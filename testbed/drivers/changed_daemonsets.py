"""Changes of DaemonSets that any process can undo, because the patch that undoes a change is kept in an annotation of the DaemonSet.

Tests change on which nodes the driver under test runs. `down` and the next session undo what a killed test left behind. An
annotation may have been written by others, so a patch from it changes only what tests change: the affinity and the update strategy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from testbed.errors import ApiError
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner

UNDO = "dra-testbed.example/undo"
_NOT_OURS = (400, 404, 422)  # no valid patch, or the DaemonSet was deleted meanwhile


def _any_process(_: str) -> bool:
    return True


def change(kube: Kube, daemonset: Object, wanted: Object, original: Object, owner: Owner, *, process: str = "") -> None:
    """Change the affinity and update strategy to those of `wanted`, and keep in the same request how to get back to `original`.

    `process` is the test process, as in the labels of the objects that it creates.
    """
    back = merge_patch(_placement(wanted), _placement(original))
    undo = json.dumps({"testbed": owner.identity, "process": process, "spec": back})
    kube.patch(
        daemonset,
        {
            "metadata": {"annotations": {UNDO: undo}},
            "spec": merge_patch(_placement(daemonset["spec"]), _placement(wanted)),
        },
    )


def undo(kube: Kube, daemonset: Object, owner: Owner, is_gone: Callable[[str], bool] = _any_process) -> bool:
    """Undo the change that a process of this testbed for which `is_gone` is True made to a DaemonSet. Return False if there is none."""
    spec = _undoing(daemonset, owner, is_gone)
    if spec is None:
        return False
    kube.patch(daemonset, {"metadata": {"annotations": {UNDO: None}}, "spec": spec})
    return True


def undo_all(kube: Kube, owner: Owner, is_gone: Callable[[str], bool] = _any_process) -> list[str]:
    """Undo all changes that processes of this testbed for which `is_gone` is True made to DaemonSets. Return their names."""
    try:
        found = kube.list("apps/v1", "DaemonSet")
    except ApiError as refused:
        if refused.status not in (403, 404):
            raise
        return []  # a user without permission to list them could not change one either
    return [str(each["metadata"]["name"]) for each in found if _undo_if_ours(kube, each, owner, is_gone)]


def _undo_if_ours(kube: Kube, daemonset: Object, owner: Owner, is_gone: Callable[[str], bool]) -> bool:
    """Undo the change of a DaemonSet. Return False if there is none, or the API server refuses the patch: no testbed has written it."""
    try:
        return undo(kube, daemonset, owner, is_gone)
    except ApiError as refused:
        if refused.status not in _NOT_OURS:
            raise
        return False


def merge_patch(now: Any, wanted: Any) -> Any:
    """Return the merge patch that changes `now` to `wanted`."""
    if not isinstance(now, dict) or not isinstance(wanted, dict):
        return wanted
    gone = {key: None for key in now if key not in wanted}
    return gone | {key: merge_patch(now.get(key), value) for key, value in wanted.items() if now.get(key) != value}


def _undoing(daemonset: Object, owner: Owner, is_gone: Callable[[str], bool]) -> Any:
    """Return the patch of the spec; None if none of these processes of this testbed has changed anything."""
    try:
        kept = json.loads((daemonset["metadata"].get("annotations") or {}).get(UNDO) or "{}")
        is_ours = kept.get("testbed") == owner.identity and is_gone(str(kept.get("process", "")))
        return _placement(kept["spec"]) if is_ours else None
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):  # not written by a testbed
        return None


def _placement(spec: Object) -> Object:
    """Return the parts of a spec, or of its patch, that tests change: the affinity of the pods and the update strategy."""
    pods = spec.get("template", {}).get("spec", {})
    kept = {key: spec[key] for key in ("updateStrategy",) if key in spec}
    return {**kept, "template": {"spec": {key: pods[key] for key in ("affinity",) if key in pods}}}

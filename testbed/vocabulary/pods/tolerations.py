"""Add the tolerations of the driver file to the pods of a manifest, because nodes with devices are often tainted. For scenarios."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from testbed.kube.client import Object
from testbed.models.driver_sections import Toleration
from testbed.vocabulary.ledger import BEFORE_PODS

_TEMPLATE = ("spec", "template", "spec")
_POD_SPECS = {
    **dict.fromkeys(BEFORE_PODS, _TEMPLATE),
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", *_TEMPLATE),
}


def with_tolerations(manifest: Object, tolerations: Sequence[Toleration]) -> Object:
    """Return the object with these tolerations added to its own; unchanged if it creates no pods."""
    if not tolerations or manifest["kind"] not in _POD_SPECS:
        return manifest
    made = copy.deepcopy(manifest)
    pod = made
    for key in _POD_SPECS[manifest["kind"]]:
        pod = pod[key]
    pod["tolerations"] = [*(pod.get("tolerations") or ()), *(_plain(each) for each in tolerations)]
    return made


def _plain(toleration: Toleration) -> Object:
    return toleration.model_dump(by_alias=True, exclude_defaults=True)

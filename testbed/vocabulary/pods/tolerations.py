"""Give the pods of a manifest the tolerations of the driver file: nodes with devices are often tainted, so that no other pod goes there.

`scenario` does it with all that it applies.
"""

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
    """The object with these tolerations beside those that it has; as it is, if it makes no pods."""
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

"""Whether a driver file names what is there: the driver, classes, pods, their container, what devices have. Asked once a driver serves.

A wrong name would fail test by test, and the driver would be blamed. Nothing is said where nothing can be seen: without the right to look,
without devices, and of a driver that runs as no pod. Called after an installation, and by the plugin for a testbed that is up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from testbed.errors import ApiError, UsageError, did_you_mean
from testbed.kube.client import Kube, Object
from testbed.models.driver_file import DriverFile

_FORBIDDEN = 403
_RESOURCE = "resource.k8s.io/v1"
_ARTICLES = {"attribute": "an attribute", "capacity": "a capacity"}
_KEYS = {"attribute": "attributes", "capacity": "capacity"}
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")


def refuse_wrong_names(kube: Kube, driver_file: DriverFile) -> None:
    """UsageError with every name in the driver file that means nothing in this cluster."""
    raise_problems(
        driver_file,
        [
            *driver_name_problems(kube, driver_file),
            *_class_problems(kube, driver_file),
            *pod_problems(kube, driver_file),
            *_container_problems(kube, driver_file),
            *_attribute_problems(kube, driver_file),
        ],
    )


def raise_problems(driver_file: DriverFile, problems: list[str]) -> None:
    """UsageError with all problems, if there are any."""
    if problems:
        raise UsageError(
            "\n  ".join([f"driver file {driver_file.name} does not fit what is in the cluster:", *problems])
        )


def driver_name_problems(kube: Kube, driver_file: DriverFile) -> list[str]:
    """Nobody publishes under the name, and the class of the file selects by the name of a driver that does.

    A driver that publishes nothing has a class that means itself, or any driver: whether it should publish, the tests say.
    """
    if _slices(kube, driver_file):
        return []
    published = {str(each["spec"]["driver"]) for each in _list_if_allowed(kube, _RESOURCE, "ResourceSlice") or ()}
    classes = _list_if_allowed(kube, _RESOURCE, "DeviceClass") or ()
    specs = [each.get("spec") or {} for each in classes if each["metadata"]["name"] == driver_file.device_class]
    expressions = [
        str(each.get("cel", {}).get("expression", "")) for one in specs for each in one.get("selectors") or ()
    ]
    named = {quoted for text in expressions for pair in _QUOTED.findall(text) for quoted in pair}
    meant = sorted(named & published)
    if not meant or driver_file.driver in named:
        return []
    what = f"nobody publishes ResourceSlices as {driver_file.driver}, and the class {driver_file.device_class}"
    return [
        f"spec.driver: {what} selects devices of {' and of '.join(meant)}; {did_you_mean(driver_file.driver, meant)}"
    ]


def pod_problems(kube: Kube, driver_file: DriverFile) -> list[str]:
    """The driver serves, no pod is its own, and there are some that look like it. A driver that runs as no pod has none that do."""
    pods = driver_file.pods
    own = _list_if_allowed(kube, "v1", "Pod", pods.namespace, labelSelector=pods.selector)
    if own is None or own or not _slices(kube, driver_file):
        return []
    elsewhere = {
        each["metadata"]["namespace"] for each in _list_if_allowed(kube, "v1", "Pod", labelSelector=pods.selector) or ()
    }
    if elsewhere:
        places = " and ".join(sorted(elsewhere))
        return [f"spec.pods.namespace: no pod in {pods.namespace} has {pods.selector}; there are some in {places}"]
    beside = _list_if_allowed(kube, "v1", "Pod", pods.namespace) or ()
    labels = {f"{key}={value}" for each in beside for key, value in (each["metadata"].get("labels") or {}).items()}
    near = did_you_mean(pods.selector, labels)
    return [f"spec.pods.selector: no pod has {pods.selector}; {near}"] if near.startswith("did") else []


def _class_problems(kube: Kube, driver_file: DriverFile) -> Iterator[str]:
    """No suite makes these: they come with the driver, or are there already."""
    found = _list_if_allowed(kube, _RESOURCE, "DeviceClass")
    if found is None:
        return
    known = [each["metadata"]["name"] for each in found]
    special = driver_file.classes.model_dump(by_alias=True, exclude_none=True)
    wanted = {"deviceClass": driver_file.device_class, **{f"classes.{key}": name for key, name in special.items()}}
    for key, name in wanted.items():
        if name not in known:
            yield _unknown_name(key, f"the cluster has no DeviceClass {name}", name, known)


def _container_problems(kube: Kube, driver_file: DriverFile) -> Iterator[str]:
    """One pod with it is enough: a selector may choose more than those on nodes."""
    pods = driver_file.pods
    specs = [
        each["spec"] for each in _list_if_allowed(kube, "v1", "Pod", pods.namespace, labelSelector=pods.selector) or ()
    ]
    names = {each["name"] for spec in specs for key in ("initContainers", "containers") for each in spec.get(key) or ()}
    if names and pods.container not in names:
        what = f"no pod of the driver has a container {pods.container}"
        yield _unknown_name("pods.container", what, pods.container, names)


def _attribute_problems(kube: Kube, driver_file: DriverFile) -> Iterator[str]:
    """Devices without any attribute or capacity are the driver's doing; they may have it under the driver's name, or under none.

    That hardware has nothing by which devices belong together may be so, and so may a cluster without devices to share; and what is
    only pretended may be anything. There only a name that is nearly right is taken for a mistake.
    """
    real = driver_file.hardware == "unknown"
    examples, sharing, own = driver_file.examples, driver_file.sharing, f"{driver_file.driver}/"
    devices = [device for each in _slices(kube, driver_file) for device in each["spec"].get("devices") or ()]
    for key, kind, wanted, sure in (
        ("probe.identityAttribute", "attribute", driver_file.probe.identity_attribute, True),
        ("examples.attribute", "attribute", examples.attribute, real),
        ("examples.capacity", "capacity", examples.capacity, real),
        ("examples.matchAttribute", "attribute", examples.match_attribute, False),
        ("sharing.capacity", "capacity", sharing.capacity if sharing else "", False),
    ):
        published = {name.removeprefix(own) for each in devices for name in each.get(_KEYS[kind]) or ()}
        name = wanted.removeprefix(own)
        if wanted and published and name not in published and (sure or _is_nearly_right(name, published)):
            yield _unknown_name(key, f"no device has {_ARTICLES[kind]} {wanted}", name, published)


def _is_nearly_right(name: str, published: Iterable[str]) -> bool:
    """Whether it looks like one that is there. A domain that two names have in common makes them no more alike."""
    domain, _, word = name.rpartition("/")
    apart = (each.rpartition("/") for each in published)
    return did_you_mean(word, {other for where, _, other in apart if where == domain}).startswith("did")


def _slices(kube: Kube, driver_file: DriverFile) -> list[Object]:
    return _list_if_allowed(kube, _RESOURCE, "ResourceSlice", fieldSelector=f"spec.driver={driver_file.driver}") or []


def _unknown_name(key: str, what: str, word: str, known: Iterable[str]) -> str:
    hint = did_you_mean(word, known)
    return f"spec.{key}: {what}{f'; {hint}' if hint else ''}"


def _list_if_allowed(
    kube: Kube, version: str, kind: str, namespace: str | None = None, **selectors: str
) -> list[Object] | None:
    """The objects, or None for who may not look; what needs the right says so itself."""
    try:
        return kube.list(version, kind, namespace, **selectors)
    except ApiError as refused:
        if refused.status != _FORBIDDEN:
            raise
        return None

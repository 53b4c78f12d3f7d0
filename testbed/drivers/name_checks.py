"""Checks the names in a driver file against the cluster: driver, classes, pods, container, attributes of devices.

A wrong name would fail one test after another, and blame the driver. A name that cannot be checked is accepted: without permission to list,
without devices, or if the driver does not run as a pod. Used after installing, and by the plugin for a testbed that is up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from testbed.drivers.published.identities import identity_collisions, name_collisions
from testbed.errors import ApiError, UsageError, did_you_mean
from testbed.kube.client import Kube, Object
from testbed.models.driver_file import DriverFile
from testbed.models.names import short_name

_FORBIDDEN = 403
_SHOWN = 12
_RESOURCE = "resource.k8s.io/v1"
_ARTICLES = {"attribute": "an attribute", "capacity": "a capacity"}
_KEYS = {"attribute": "attributes", "capacity": "capacity"}
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")


@dataclass(frozen=True)
class WrongName:
    """A name in a driver file that does not exist in the cluster, with its key."""

    key: str
    what: str

    def __str__(self) -> str:
        return f"{self.key}: {self.what}"


class WrongNames(UsageError):
    """Names of a driver file do not exist. `problems` has them one by one."""

    def __init__(self, what: str, problems: Sequence[WrongName]) -> None:
        super().__init__(what)
        self.problems = tuple(problems)


def refuse_wrong_names(kube: Kube, driver_file: DriverFile) -> None:
    """Raise UsageError with all names of the driver file that do not exist in the cluster."""
    raise_problems(driver_file, wrong_names(kube, driver_file))


def wrong_names(kube: Kube, driver_file: DriverFile) -> list[WrongName]:
    """Return all names of the driver file that do not exist in the cluster."""
    return [
        *driver_name_problems(kube, driver_file),
        *_class_problems(kube, driver_file),
        *pod_problems(kube, driver_file),
        *_container_problems(kube, driver_file),
        *_attribute_problems(kube, driver_file),
        *_identity_problems(kube, driver_file),
    ]


def raise_problems(driver_file: DriverFile, problems: Sequence[WrongName], *, of: str = "the cluster") -> None:
    """Raise UsageError with all problems, if there are any."""
    if problems:
        lines = [f"driver file {driver_file.name} does not match {of}:", *map(str, problems)]
        raise WrongNames("\n  ".join(lines), problems)


def driver_name_problems(kube: Kube, driver_file: DriverFile) -> list[WrongName]:
    """Return a problem if no slice has the driver's name, and its class selects devices of another driver that publishes slices.

    A class that selects this driver, or any driver, is no problem: tests find out whether the driver should publish.
    """
    if _slices(kube, driver_file):
        return []
    published = {str(each["spec"]["driver"]) for each in _list_if_allowed(kube, _RESOURCE, "ResourceSlice") or ()}
    classes = _list_if_allowed(kube, _RESOURCE, "DeviceClass") or ()
    specs = [each.get("spec") or {} for each in classes if each["metadata"]["name"] == driver_file.device_class]
    expressions = [
        str(each.get("cel", {}).get("expression", "")) for spec in specs for each in spec.get("selectors") or ()
    ]
    named = {quoted for text in expressions for pair in _QUOTED.findall(text) for quoted in pair}
    selected = sorted(named & published)
    if not selected or driver_file.driver in named:
        return []
    what = f"no ResourceSlice has the driver {driver_file.driver}, and DeviceClass {driver_file.device_class}"
    hint = did_you_mean(driver_file.driver, selected)
    return [WrongName("spec.driver", f"{what} selects devices of {' and '.join(selected)}; {hint}")]


def pod_problems(kube: Kube, driver_file: DriverFile) -> list[WrongName]:
    """Return a problem if the driver publishes slices and none of its pods is found, with labels or namespaces of pods that are similar."""
    pods = driver_file.pods
    own = _list_if_allowed(kube, "v1", "Pod", pods.namespace, labelSelector=pods.selector)
    if own is None or own or not _slices(kube, driver_file):
        return []
    elsewhere = {
        each["metadata"]["namespace"] for each in _list_if_allowed(kube, "v1", "Pod", labelSelector=pods.selector) or ()
    }
    none = f"no pod in {pods.namespace} matches {pods.selector}"
    if elsewhere:
        return [WrongName("spec.pods.namespace", f"{none}, but pods in {' and '.join(sorted(elsewhere))} do")]
    found = _list_if_allowed(kube, "v1", "Pod", pods.namespace) or ()
    labels = {f"{key}={value}" for each in found for key, value in (each["metadata"].get("labels") or {}).items()}
    near = did_you_mean(pods.selector, labels)
    if not labels or (driver_file.install is None and not near.startswith("did")):
        return []  # the driver may not run as a pod
    hint = near or f"pods there have {', '.join(sorted(labels)[:_SHOWN])}"
    return [WrongName("spec.pods.selector", f"{none}; {hint}")]


def _class_problems(kube: Kube, driver_file: DriverFile) -> Iterator[WrongName]:
    """Yield a problem for each DeviceClass that does not exist. Tests do not create these classes."""
    found = _list_if_allowed(kube, _RESOURCE, "DeviceClass")
    if found is None:
        return
    known = [each["metadata"]["name"] for each in found]
    special = driver_file.classes.model_dump(by_alias=True, exclude_none=True)
    ordinary = {f"devices.classes[{index}]": name for index, name in enumerate(driver_file.devices.classes)}
    wanted = {**ordinary, **{f"optional.{key}.class": name for key, name in special.items()}}
    for key, name in wanted.items():
        if name not in known:
            yield _unknown_name(key, f"the cluster has no DeviceClass {name}", name, known)


def _container_problems(kube: Kube, driver_file: DriverFile) -> Iterator[WrongName]:
    """Yield a problem if no pod has the container. One pod is enough, because the selector may match other pods too."""
    pods = driver_file.pods
    specs = [
        each["spec"] for each in _list_if_allowed(kube, "v1", "Pod", pods.namespace, labelSelector=pods.selector) or ()
    ]
    names = {each["name"] for spec in specs for key in ("initContainers", "containers") for each in spec.get(key) or ()}
    if names and pods.container not in names:
        what = f"no pod of the driver has a container {pods.container}"
        yield _unknown_name("pods.container", what, pods.container, names)


def _attribute_problems(kube: Kube, driver_file: DriverFile) -> Iterator[WrongName]:
    """Yield a problem for each attribute or capacity that no device has, with or without the driver's domain.

    Hardware may lack some of them, and fake hardware may lack all: there, only a near match of an existing name counts as a mistake.
    Devices without any attribute or capacity are left to the tests.
    """
    is_real = driver_file.hardware == "unknown"
    examples, sharing, driver = driver_file.examples, driver_file.sharing, driver_file.driver
    devices = [device for each in _slices(kube, driver_file) for device in each["spec"].get("devices") or ()]
    for key, kind, wanted, required in (
        ("devices.identity.attribute", "attribute", driver_file.identity_attribute, True),
        ("devices.examples.attribute", "attribute", examples.attribute, is_real),
        ("devices.examples.capacity", "capacity", examples.capacity, is_real),
        ("devices.examples.match", "attribute", examples.match_attribute, is_real),
        ("optional.capacity.name", "capacity", sharing.capacity if sharing else "", is_real),
        *(("devices.others", "attribute", name, False) for name in driver_file.other_devices),
    ):
        published = {short_name(name, driver) for each in devices for name in each.get(_KEYS[kind]) or ()}
        name = short_name(wanted, driver)
        if wanted and published and name not in published and (required or _has_near_match(name, published)):
            yield _unknown_name(key, f"no device has {_ARTICLES[kind]} {wanted}", name, published)


def _identity_problems(kube: Kube, driver_file: DriverFile) -> list[WrongName]:
    """Return a problem for each identity or name that several ordinary devices have within its scope: tests would mix them up."""
    slices = _slices(kube, driver_file)
    found = identity_collisions(slices, driver_file) if driver_file.identity_attribute else []
    names = name_collisions(slices, driver_file) if driver_file.probe.shows_names else []
    in_probe = f"{driver_file.probe.key} shows names"
    return [
        *(WrongName("spec.devices.identity", each) for each in found),
        *(WrongName("spec.probe", f"{each}, but {in_probe}") for each in names),
    ]


def _has_near_match(name: str, published: Iterable[str]) -> bool:
    """Return True if a published name of the same domain is similar. The domain itself does not count."""
    domain, _, word = name.rpartition("/")
    split = (each.rpartition("/") for each in published)
    return did_you_mean(word, {other for other_domain, _, other in split if other_domain == domain}).startswith("did")


def _slices(kube: Kube, driver_file: DriverFile) -> list[Object]:
    return _list_if_allowed(kube, _RESOURCE, "ResourceSlice", fieldSelector=f"spec.driver={driver_file.driver}") or []


def _unknown_name(key: str, what: str, name: str, known: Iterable[str]) -> WrongName:
    hint = did_you_mean(name, known)
    return WrongName(f"spec.{key}", f"{what}{f'; {hint}' if hint else ''}")


def _list_if_allowed(
    kube: Kube, version: str, kind: str, namespace: str | None = None, **selectors: str
) -> list[Object] | None:
    """Return the objects, or None if listing them is forbidden. What needs the permission reports that itself."""
    try:
        return kube.list(version, kind, namespace, **selectors)
    except ApiError as refused:
        if refused.status != _FORBIDDEN:
            raise
        return None

"""Applies a driver's manifests in the order of its driver file, and deletes them in reverse order."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from testbed.drivers.manifests.adjustments import adjust
from testbed.drivers.manifests.order import undeclared_namespaces
from testbed.drivers.manifests.sources import objects_of
from testbed.drivers.shared_objects import is_managed_by, is_shared, release_shared
from testbed.errors import ApiError, UsageError
from testbed.kube import features
from testbed.kube.client import Kube, Object
from testbed.kube.ownership import Owner, identity_of, is_ours, owner_of
from testbed.models.driver_file import DriverFile
from testbed.waiting import Budget, NotYet, eventually

_APPLIED = Budget("object applied", 30, "the API server may wait 10 s for its storage")
_SERVED = Budget("kind served", 30, "the API server publishes a new kind within seconds")
_GONE = Budget("driver's pods deleted", 60, "a driver has a grace period to unregister and clean up")


def install(
    kube: Kube,
    driver_file: DriverFile,
    owner: Owner,
    *,
    image: str = "",
    hardware: Path | None = None,
    loaded: Collection[str] = (),
    report: Callable[[str], None] = lambda _: None,
) -> None:
    """Apply all manifests as objects of the testbed. Do nothing if the driver file has no `install` section.

    `loaded` are the images that were loaded into the nodes. `report` is called with each change of the manifests.
    """
    objects, changes = adjusted_objects(kube, driver_file, image=image, hardware=hardware, loaded=loaded)
    missing = [each for each in undeclared_namespaces(objects, driver_file.pods.namespace) if not _existing(kube, each)]
    created = [f"namespace {each['metadata']['name']} does not exist and is created" for each in missing]
    for change in (*changes, *created):
        report(change)
    apply_objects(kube, [*missing, *objects], driver_file.driver, owner)


def apply_objects(kube: Kube, wanted: Collection[Object], driver: str, owner: Owner) -> None:
    """Apply objects of a driver's installation. Raise UsageError before anything is changed if others created one of them."""
    existing = [_existing(kube, each) for each in wanted]
    for each, found in zip(wanted, existing, strict=True):
        if found and not owner.owns(found):
            _refuse_unless_shared(each, found)
    for each, found in zip(wanted, existing, strict=True):
        if found and not owner.owns(found):
            _apply(kube, each, owner, force=False)
        else:
            _apply_own(kube, owner.mark_driver(each, driver), owner, is_new=found is None)
        _wait_until_served(kube, each)


def adjusted_objects(
    kube: Kube, driver_file: DriverFile, *, image: str, hardware: Path | None, loaded: Collection[str]
) -> tuple[list[Object], list[str]]:
    """Return the objects of a driver as they are applied to this cluster, and a line for each change of what its vendor wrote."""
    install = driver_file.install
    kubernetes = features.version(kube) if install and install.chart else ""
    objects, changes = adjust(
        objects_of(driver_file, image=image, hardware=hardware, kubernetes=kubernetes), driver_file, loaded
    )
    _require_pull_secret(kube, driver_file, objects)
    return objects, changes


def _require_pull_secret(kube: Kube, driver_file: DriverFile, objects: Collection[Object]) -> None:
    """Raise UsageError if neither the cluster nor the manifests have the Secret of `install.pullSecret`."""
    name, namespace = driver_file.install and driver_file.install.pull_secret, driver_file.pods.namespace
    created = {
        (each["metadata"].get("namespace"), each["metadata"]["name"]) for each in objects if each["kind"] == "Secret"
    }
    if name and (namespace, name) not in created and kube.find("v1", "Secret", name, namespace) is None:
        raise UsageError(
            f"spec.install.pullSecret: there is no Secret {name} in namespace {namespace}, and no manifest of the driver creates it",
            hint=f"kubectl --namespace {namespace} create secret docker-registry {name} …; or add its manifest to spec.install.manifests",
        )


def uninstall(
    kube: Kube, driver_file: DriverFile, owner: Owner, *, image: str = "", hardware: Path | None = None
) -> None:
    """Delete what `install` created, undo its changes of shared objects, and wait until the driver's pods are gone. Idempotent."""
    objects = manifests(driver_file, image=image, hardware=hardware)
    namespaces = undeclared_namespaces(objects, driver_file.pods.namespace) if objects else ()
    for manifest in reversed([*namespaces, *objects]):
        found = _existing(kube, manifest)
        if found and owner.owns(found):
            kube.delete(found)
        elif found and is_shared(found) and is_managed_by(found, owner):
            release_shared(kube, found, owner)
    if driver_file.install:
        eventually(lambda: _no_pods(kube, driver_file), f"the pods of driver {driver_file.driver} to be deleted", _GONE)


def describe_changes(
    driver_file: DriverFile, loaded: Collection[str], *, hardware: Path | None = None, kubernetes: str = ""
) -> list[str]:
    """Return a line for each change that `install` would make to what the vendor wrote, except for missing namespaces."""
    return adjust(
        objects_of(driver_file, image="image", hardware=hardware, kubernetes=kubernetes), driver_file, loaded
    )[1]


def manifests(
    driver_file: DriverFile, *, image: str = "", hardware: Path | None = None, kubernetes: str = ""
) -> list[Object]:
    """Return the objects of a driver, rendered and in order; none for a driver that is installed already.

    A chart is rendered for that version of Kubernetes, by default for the newest one.
    """
    return adjust(objects_of(driver_file, image=image, hardware=hardware, kubernetes=kubernetes), driver_file, ())[0]


def _existing(kube: Kube, manifest: Object) -> Object | None:
    metadata = manifest["metadata"]
    try:
        return kube.find(
            manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace", "default")
        )
    except UsageError:  # the API server does not know the kind yet: an earlier manifest defines it
        return None


def _apply(kube: Kube, manifest: Object, owner: Owner, *, force: bool) -> None:
    """Apply an object, and retry while the API server is overloaded. Applying twice is safe."""

    def attempt() -> None:
        try:
            kube.apply(manifest, manager=owner.manager, force=force)
        except ApiError as busy:
            if not busy.overloaded:
                raise
            raise NotYet(str(busy)) from busy

    eventually(attempt, f"the API server to accept {manifest['kind']} {manifest['metadata']['name']}", _APPLIED)


def _wait_until_served(kube: Kube, manifest: Object) -> None:
    """Wait until the API server serves the kind that an object defines. Later objects may have it."""
    if manifest["kind"] != "CustomResourceDefinition":
        return
    spec = manifest["spec"]
    version, kind = next(each["name"] for each in spec["versions"] if each["served"]), spec["names"]["kind"]

    def served() -> None:
        try:
            kube.resource(f"{spec['group']}/{version}", kind)
        except (UsageError, ApiError) as missing:
            if isinstance(missing, ApiError) and missing.status != 404:
                raise
            raise NotYet(str(missing)) from missing

    eventually(served, f"the API server to serve {kind} of {spec['group']}/{version}", _SERVED)


def _apply_own(kube: Kube, manifest: Object, owner: Owner, *, is_new: bool) -> None:
    """Apply an object of the testbed. A new one is not forced, so that the API server reports if another testbed just created it."""
    try:
        _apply(kube, manifest, owner, force=not is_new)
    except ApiError as refused:
        if refused.status != 409 or not is_new:
            raise
        raise _conflict(manifest, _existing(kube, manifest) or manifest) from refused


def _refuse_unless_shared(manifest: Object, found: Object) -> None:
    """Raise UsageError unless the existing object may be shared. Objects of other testbeds may not: they are deleted with those."""
    if is_ours(found) or not is_shared(manifest):
        raise _conflict(manifest, found)


def _conflict(manifest: Object, found: Object) -> UsageError:
    kind, name, namespace = manifest["kind"], manifest["metadata"]["name"], manifest["metadata"].get("namespace")
    message = f"{kind} {name}{f' in namespace {namespace}' if namespace else ''} already exists, and"
    if is_ours(found):
        owner = owner_of([found]) or f"a testbed with the id {identity_of(found)}"
        return UsageError(
            f"{message} it belongs to {owner}",
            hint="wait until that testbed is removed; dra-testbed sweep --kubeconfig removes abandoned ones",
        )
    return UsageError(
        f"{message} dra-testbed did not create it",
        hint="to judge a driver that is already installed, use a driver file without spec.install",
    )


def _no_pods(kube: Kube, driver_file: DriverFile) -> None:
    left = kube.list("v1", "Pod", driver_file.pods.namespace, labelSelector=driver_file.pods.selector)
    if left:
        raise NotYet("pods still exist: " + ", ".join(pod["metadata"]["name"] for pod in left))

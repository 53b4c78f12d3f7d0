"""What is kept when something fails: objects, events and logs of the test's namespace, the driver's slices and logs, how the nodes are.

Never a secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from testbed.drivers.published.missing import no_pod
from testbed.drivers.ready import driver_pods
from testbed.errors import ApiError, TestbedError
from testbed.kube.client import Object
from testbed.models.names import safe_name
from testbed.providers.base import Capability
from testbed.vocabulary.observing.diagnosis import oldest_first
from testbed.vocabulary.world import CDI_FOLDERS, RESOURCE, World

# Only these kinds: Secrets and ConfigMaps are nobody's evidence.
_KINDS = (
    *(("v1", "Pod"), (RESOURCE, "ResourceClaim"), (RESOURCE, "ResourceClaimTemplate")),
    *(("apps/v1", "DaemonSet"), ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job")),
)
_DRIVER_LOG_LINES = 2000


class _NotThere(Exception):
    """There is nothing to be written, and that says something."""


def capture(world: World, namespace: str | None, into: Path) -> None:
    """Write what there is; a part that cannot be had leaves a note and does not keep the others away."""
    into.mkdir(parents=True, exist_ok=True)
    missing: list[str] = []
    parts = [_nodes, _slices, _driver_logs] + ([_objects, _events, _pod_logs, _probes, _cdi_files] if namespace else [])
    for part in parts:
        try:
            part(world, namespace or "", into)
        except (TestbedError, OSError, _NotThere) as refused:
            missing.append(f"{part.__name__.strip('_')}: {refused}")
    if missing:
        (into / "missing.txt").write_text("\n".join(missing) + "\n")


def _objects(world: World, namespace: str, into: Path) -> None:
    for api_version, kind in _KINDS:
        _write_objects(into / f"{kind.lower()}s.yaml", world.kube.list(api_version, kind, namespace))


def _slices(world: World, _namespace: str, into: Path) -> None:
    found = world.slices()
    _write_objects(into / "resourceslices.yaml", found)
    if not found:
        raise _NotThere(f"{world.driver_file.driver} publishes no ResourceSlice")


def _nodes(world: World, _namespace: str, into: Path) -> None:
    _write_objects(into / "nodes.yaml", [_health(each) for each in world.kube.list("v1", "Node")])


def _health(node: Object) -> Object:
    """What may keep pods from a node. Its addresses and labels are nobody's evidence."""
    spec = {key: node["spec"][key] for key in ("taints", "unschedulable") if key in node["spec"]}
    conditions = node.get("status", {}).get("conditions", [])
    name = {"name": node["metadata"]["name"]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": name, "spec": spec, "status": {"conditions": conditions}}


def _events(world: World, namespace: str, into: Path) -> None:
    found = oldest_first(world.kube.list("v1", "Event", namespace))
    lines = [
        f"{each.get('lastTimestamp') or each.get('eventTime') or ''}  {each.get('type')}  "
        f"{each['involvedObject'].get('kind')}/{each['involvedObject'].get('name')}  {each.get('reason')}: {each.get('message')}"
        for each in found
    ]
    (into / "events.txt").write_text("".join(f"{line}\n" for line in lines))


def _pod_logs(world: World, namespace: str, into: Path) -> None:
    for pod in world.kube.list("v1", "Pod", namespace):
        names = [each["name"] for key in ("initContainers", "containers") for each in pod["spec"].get(key, ())]
        _write_logs(world, pod, names, into / "logs")


def _probes(world: World, namespace: str, into: Path) -> None:
    for look in world.probe_results.of(namespace):
        (into / "probe").mkdir(exist_ok=True)
        kind = ".settings" if look.of_settings else ""
        (into / "probe" / f"{safe_name(look.pod)}.{safe_name(look.container)}{kind}.txt").write_text(look.redacted)


def _driver_logs(world: World, namespace: str, into: Path) -> None:
    """Since the test began, and of a container that ended meanwhile all that it said since then."""
    pods, wanted = driver_pods(world.kube, world.driver_file), world.driver_file.pods.container
    home = world.kube.find("v1", "Namespace", namespace) if namespace else None
    began = str(home["metadata"].get("creationTimestamp", "")) if home else ""
    for pod in pods:
        _write_logs(world, pod, [wanted], into / "driver", began)
        if began and _ended(pod, wanted) >= began:
            _write_logs(world, pod, [wanted], into / "driver", began, previous=True)
    if not pods:
        raise _NotThere(f"{no_pod(world.driver_file)} is there")


def _ended(pod: Object, container: str) -> str:
    """When the container ended the last time; '' for one that never did."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    ends = [each.get("lastState", {}).get("terminated", {}) for each in statuses if each["name"] == container]
    return next((str(each["finishedAt"]) for each in ends if each.get("finishedAt")), "")


def _write_logs(
    world: World, pod: Object, containers: Sequence[str], folder: Path, since: str = "", *, previous: bool = False
) -> None:
    folder.mkdir(exist_ok=True)
    name, place = pod["metadata"]["name"], pod["metadata"]["namespace"]
    for container in containers:
        try:
            text = world.kube.logs(place, name, container=container, previous=previous, since=since)
            text = text or (f"nothing since {since}, when the test began\n" if since else "")
        except ApiError as refused:
            text = f"no log: {refused}\n"
        tail = "\n".join(text.splitlines()[-_DRIVER_LOG_LINES:])
        kind = "previous.log" if previous else "log"
        (folder / f"{safe_name(name)}.{safe_name(container)}.{kind}").write_text(tail + "\n")


def _cdi_files(world: World, namespace: str, into: Path) -> None:
    """What lies in the CDI folders of nodes where something was said of CDI; where the harness can look at nodes."""
    if world.cluster is None or Capability.RUN_ON_NODE not in world.cluster.capabilities:
        return
    pods = world.kube.list("v1", "Pod", namespace)
    events = world.kube.list("v1", "Event", namespace)
    told = {each["involvedObject"].get("name") for each in events if "CDI" in str(each.get("message"))}
    nodes = {
        pod["spec"].get("nodeName")
        for pod in pods
        if pod["metadata"]["name"] in told or "CDI" in str(pod.get("status", {}))
    }
    for node in (each for each in world.cluster.nodes() if each.name in nodes):
        listed = node.run("sh", "-c", f"ls -la {' '.join(CDI_FOLDERS)} 2>&1", check=False).stdout
        (into / "cdi").mkdir(exist_ok=True)
        (into / "cdi" / f"{safe_name(node.name)}.txt").write_text(listed)


def _write_objects(path: Path, objects: list[Object]) -> None:
    for each in objects:
        each["metadata"].pop("managedFields", None)
    if objects:
        path.write_text(yaml.safe_dump_all(objects, sort_keys=False, allow_unicode=True))

"""The evidence of a failed test: objects, events and logs of its namespace, the driver's slices and logs, and the conditions of nodes.

It contains no Secrets and no ConfigMaps, and each file is redacted.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from testbed.drivers.missing import no_pod_message
from testbed.drivers.ready import driver_pods
from testbed.errors import ApiError, TestbedError
from testbed.kube.client import Object
from testbed.models.names import safe_name
from testbed.redaction import redactor
from testbed.vocabulary.cluster.cdi_files import list_cdi_folders, reachable_nodes, read_cdi_files
from testbed.vocabulary.observing.diagnosis import oldest_first
from testbed.vocabulary.world import RESOURCE, World

# No Secrets and ConfigMaps: reports are published.
_KINDS = (
    *(("v1", "Pod"), (RESOURCE, "ResourceClaim"), (RESOURCE, "ResourceClaimTemplate")),
    *(("apps/v1", "DaemonSet"), ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job")),
)
_DRIVER_LOG_LINES = 2000


class _Missing(Exception):
    """An expected object does not exist, which may explain the failure."""


def capture(world: World, namespace: str | None, into: Path) -> None:
    """Write all parts of the evidence. A part that fails is noted in missing.txt, and the others are still written."""
    into.mkdir(parents=True, exist_ok=True)
    missing: list[str] = []
    _register_secrets(world, namespace)
    parts = [_nodes, _slices, _driver_logs] + ([_objects, _events, _pod_logs, _probes, _cdi_files] if namespace else [])
    for part in parts:
        try:
            part(world, namespace or "", into)
        except (TestbedError, OSError, _Missing) as refused:
            missing.append(f"{part.__name__.strip('_')}: {refused}")
    if missing:
        _write(into / "missing.txt", "\n".join(missing) + "\n")


def _register_secrets(world: World, namespace: str | None) -> None:
    """Read the Secrets of the test and of the driver, if permitted, so that the redactor knows their values."""
    for each in dict.fromkeys(filter(None, (namespace, world.driver_file.pods.namespace))):
        with contextlib.suppress(TestbedError):
            for secret in world.kube.list("v1", "Secret", each):
                redactor.register_secret(secret)


def _write(path: Path, text: str) -> None:
    """Write a new file without credentials. A link of this name is not followed."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "w", errors="replace") as file:
        file.write(redactor.redact(text))


def _objects(world: World, namespace: str, into: Path) -> None:
    for api_version, kind in _KINDS:
        _write_objects(into / f"{kind.lower()}s.yaml", world.kube.list(api_version, kind, namespace))


def _slices(world: World, _namespace: str, into: Path) -> None:
    found = world.slices()
    _write_objects(into / "resourceslices.yaml", found)
    if not found:
        raise _Missing(f"{world.driver_file.driver} publishes no ResourceSlice")


def _nodes(world: World, _namespace: str, into: Path) -> None:
    _write_objects(into / "nodes.yaml", [_health(each) for each in world.kube.list("v1", "Node")])


def _health(node: Object) -> Object:
    """Return the taints and conditions of a node, without its addresses and labels."""
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
    _write(into / "events.txt", "".join(f"{line}\n" for line in lines))


def _pod_logs(world: World, namespace: str, into: Path) -> None:
    for pod in world.kube.list("v1", "Pod", namespace):
        names = [each["name"] for key in ("initContainers", "containers") for each in pod["spec"].get(key, ())]
        _write_logs(world, pod, names, into / "logs")


def _probes(world: World, namespace: str, into: Path) -> None:
    for result in world.probe_results.of(namespace):
        (into / "probe").mkdir(exist_ok=True)
        kind = ".settings" if result.of_settings else ""
        name = f"{safe_name(result.pod)}.{safe_name(result.container)}{kind}.txt"
        _write(into / "probe" / name, result.evidence)


def _driver_logs(world: World, namespace: str, into: Path) -> None:
    """Write the driver's logs since the test began, also those of a container that restarted since then; all if its namespace is gone."""
    pods, wanted = driver_pods(world.kube, world.driver_file), world.driver_file.pods.container
    home = world.kube.find("v1", "Namespace", namespace) if namespace else None
    began = str(home["metadata"].get("creationTimestamp", "")) if home else ""
    for pod in pods:
        _write_logs(world, pod, [wanted], into / "driver", began)
        ended = _ended(pod, wanted)
        if ended and ended >= began:
            _write_logs(world, pod, [wanted], into / "driver", began, previous=True)
    if not pods:
        raise _Missing(f"{no_pod_message(world.driver_file)} exists")


def _ended(pod: Object, container: str) -> str:
    """Return when the container last ended, or '' if it never did."""
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
            text = text or (f"no output since {since}, when the test began\n" if since else "")
        except ApiError as refused:
            text = f"the log cannot be read: {refused}\n"
        tail = "\n".join(text.splitlines()[-_DRIVER_LOG_LINES:])
        kind = "previous.log" if previous else "log"
        _write(folder / f"{safe_name(name)}.{safe_name(container)}.{kind}", tail + "\n")


def _cdi_files(world: World, namespace: str, into: Path) -> None:
    """Write the CDI files of each node with a pod of the test, if the cluster can run programs on nodes."""
    nodes = reachable_nodes(world.cluster)
    used = {pod["spec"].get("nodeName") for pod in world.kube.list("v1", "Pod", namespace)} if nodes else ()
    for node in (nodes[name] for name in sorted(nodes) if name in used):
        folder = into / "cdi" / safe_name(node.name)
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "listing.txt", list_cdi_folders(node))
        for path, text in read_cdi_files(node).items():
            _write(folder / safe_name(path.lstrip("/").replace("/", "_")), text)


def _write_objects(path: Path, objects: list[Object]) -> None:
    for each in objects:
        each["metadata"].pop("managedFields", None)
    if objects:
        _write(path, yaml.safe_dump_all(map(redactor.redact_data, objects), sort_keys=False, allow_unicode=True))

"""The cluster of `bench driver`: an API server with a Node object and allocated claims, but without a kubelet and pods."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.bench.kubelet import ClaimRef
from testbed.bench.measured_drivers import DriverEnvironment, MeasuredDriver
from testbed.binaries import ensure, lock_for
from testbed.bringup import temporary_cluster_folder
from testbed.kube.client import Kube, Object
from testbed.models.config import TestbedConfig
from testbed.progress import Progress, Silent
from testbed.providers.base import Artifacts, ClusterSpec
from testbed.providers.local import creation
from testbed.waiting import Budget, NotYet, eventually

_NODE = "bench"
_API = "resource.k8s.io/v1"
_BOOTSTRAP = Budget("bootstrap", 30, "the API server creates its namespaces within a second after it is ready")
# On a node /var/run is a tmpfs, so CDI files are in memory.
_MEMORY = Path("/dev/shm")  # noqa: S108 - tempfile creates the folders in it
_WRITES = re.compile(r'^apiserver_request_total\{[^}]*resource="resourceslices"[^}]*\} (\d+)', re.MULTILINE)
_READS = re.compile(r'verb="(?:GET|LIST|WATCH)"|dry_run="All"')


@dataclass
class BareCluster:
    """An API server with one Node object, and the credentials that all drivers use."""

    folder: Path
    kube: Kube
    server: str
    version: str

    @contextlib.contextmanager
    def driver_environment(self) -> Iterator[DriverEnvironment]:
        """Yield the connection to the API server with new folders for one driver, which are removed at the end."""
        memory = _MEMORY if _MEMORY.is_dir() else None
        with (
            tempfile.TemporaryDirectory(prefix="dra-", dir=self.folder) as disk,
            tempfile.TemporaryDirectory(prefix="dra-testbed-cdi-", dir=memory) as cdi,
        ):
            plugins, registry = Path(disk) / "p", Path(disk) / "r"
            for each in (plugins, registry):
                each.mkdir()
            credentials = {"token": self.folder / "token", "kubeconfig": self.folder / "kubeconfig"}
            authority = self.folder / "authority.crt"
            yield DriverEnvironment(
                plugins, registry, Path(cdi), self.server, authority=authority, node=_NODE, **credentials
            )

    def create_claims(self, driver: MeasuredDriver, count: int, devices: int) -> list[ClaimRef]:
        """Create claims and allocate them to this number of devices in turn, as the scheduler would do."""
        return [self._create_claim(driver, index, driver.device(index % devices)) for index in range(count)]

    def clear_device_status(self, claims: Sequence[ClaimRef]) -> None:
        """Clear the device status of claims, so that drivers write it again, as they do for the new claims of a kubelet."""
        with_status = {
            each["metadata"]["uid"] for each in self.kube.list(_API, "ResourceClaim") if each["status"].get("devices")
        }
        for claim in claims:
            if claim.uid in with_status:
                path = f"/apis/{_API}/namespaces/{claim.namespace}/resourceclaims/{claim.name}/status"
                change = {"status": {"devices": None}}
                self.kube.request("PATCH", path, body=change, content_type="application/merge-patch+json")

    def slices(self, driver: MeasuredDriver) -> list[Object]:
        """Return the slices that the driver has published."""
        return self.kube.list(_API, "ResourceSlice", fieldSelector=f"spec.driver={driver.name}")

    def delete_slices(self, driver: MeasuredDriver) -> None:
        """Delete the driver's slices, as a kubelet does when it starts."""
        for each in self.slices(driver):
            self.kube.delete(each)

    def slice_writes(self) -> int:
        """Return the number of write requests for slices since the API server started, from its metrics."""
        text = str(self.kube.request("GET", "/metrics", timeout=30))
        return sum(int(line[1]) for line in _WRITES.finditer(text) if not _READS.search(line[0]))

    def _create_claim(self, driver: MeasuredDriver, index: int, device: str) -> ClaimRef:
        name = f"{driver.name}-{index}"
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        spec = {"devices": {"requests": [request]}}
        meta = {"name": name, "namespace": "default"}
        claim = self.kube.create({"apiVersion": _API, "kind": "ResourceClaim", "metadata": meta, "spec": spec})
        result = {"request": "gpu", "driver": driver.name, "pool": _NODE, "device": device}
        self.kube.update({**claim, "status": {"allocation": {"devices": {"results": [result]}}}}, subresource="status")
        return ClaimRef("default", name, claim["metadata"]["uid"])


@contextlib.contextmanager
def start_bare_cluster(kubernetes: str, progress: Progress) -> Iterator[BareCluster]:
    """Start etcd and an API server of this version, and remove them with all their files at the end."""
    lock = lock_for(kubernetes)
    programs = ensure(lock, ["etcd", "kube-apiserver"], progress=Silent())
    spec = ClusterSpec(lock.kubernetes, nodes=1)
    config = TestbedConfig(name=f"bench-{secrets.token_hex(3)}", kubernetes=kubernetes, nodes=1)
    with (
        tempfile.TemporaryDirectory(prefix="dra-testbed-bench-") as folder,
        temporary_cluster_folder(config, progress) as cluster_folder,
    ):
        with progress.step(f"etcd and API server {lock.kubernetes}"):
            control_plane = creation.start_control_plane(config.name, spec, Artifacts(programs), cluster_folder)
            creation.wait_for_api_server(control_plane)
            kubeconfig = control_plane.kubeconfig
            server = _write_authority(Path(folder), kubeconfig)
            cluster = BareCluster(Path(folder), Kube(kubeconfig), server, lock.kubernetes)
            _create_node_and_token(cluster)
        yield cluster


def _create_node_and_token(cluster: BareCluster) -> None:
    """Create the Node, and write a token and a kubeconfig with all permissions, which every driver uses."""

    def account() -> Object:
        if not cluster.kube.find("v1", "Namespace", "default"):
            raise NotYet("no namespace default")
        return cluster.kube.create(_object("v1", "ServiceAccount", "bench", namespace="default"))

    eventually(account, "the namespace default", _BOOTSTRAP, longest_pause=0.1)
    cluster.kube.create(_object("v1", "Node", _NODE))
    cluster.kube.create(
        _object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "bench")
        | {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "bench", "namespace": "default"}],
        }
    )
    path = "/api/v1/namespaces/default/serviceaccounts/bench/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}
    token = cluster.kube.request("POST", path, body=request)["status"]["token"]
    (cluster.folder / "token").write_text(token)
    _write_kubeconfig(cluster, token)


def _write_authority(folder: Path, kubeconfig: Path) -> str:
    """Write the API server's certificate authority into the folder; return the server's address."""
    cluster = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]
    (folder / "authority.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    return str(cluster["server"])


def _write_kubeconfig(cluster: BareCluster, token: str) -> None:
    entry = {"server": cluster.server, "certificate-authority": str(cluster.folder / "authority.crt")}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": entry}],
        "users": [{"name": "bench", "user": {"token": token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    (cluster.folder / "kubeconfig").write_text(json.dumps(content))


def _object(api_version: str, kind: str, name: str, **more: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **more}}


def count_published_devices(slices: Sequence[Object]) -> int:
    """Return the number of devices in a complete pool, or 0 if slices are missing or of different generations."""
    generations = {each["spec"]["pool"]["generation"] for each in slices}
    complete = len(generations) == 1 and len(slices) == slices[0]["spec"]["pool"]["resourceSliceCount"]
    return sum(len(each["spec"].get("devices", ())) for each in slices) if complete else 0

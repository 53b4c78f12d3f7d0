"""Where `bench driver` lets drivers work: an API server alone, a node that is only an object, and allocated claims. No kubelet, no pods."""

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
_BOOTSTRAP = Budget("bootstrap", 30, "the API server makes its own namespaces in a second after it is ready")
# A node has its CDI files in memory: /var/run is a tmpfs there.
_MEMORY = Path("/dev/shm")  # noqa: S108 - its folders are made by tempfile, with a name of their own
_WRITES = re.compile(r'^apiserver_request_total\{[^}]*resource="resourceslices"[^}]*\} (\d+)', re.MULTILINE)
_READS = re.compile(r'verb="(?:GET|LIST|WATCH)"|dry_run="All"')


@dataclass
class BareCluster:
    """One API server, as the measuring sees it."""

    folder: Path
    kube: Kube
    server: str
    version: str

    @contextlib.contextmanager
    def driver_environment(self) -> Iterator[DriverEnvironment]:
        """Fresh folders for one driver."""
        memory = _MEMORY if _MEMORY.is_dir() else None
        with (
            tempfile.TemporaryDirectory(prefix="dra-", dir=self.folder) as disk,
            tempfile.TemporaryDirectory(prefix="dra-testbed-cdi-", dir=memory) as cdi,
        ):
            plugins, registry = Path(disk) / "p", Path(disk) / "r"
            for made in (plugins, registry):
                made.mkdir()
            own = {"token": self.folder / "token", "kubeconfig": self.folder / "kubeconfig"}
            authority = self.folder / "authority.crt"
            yield DriverEnvironment(plugins, registry, Path(cdi), self.server, authority=authority, node=_NODE, **own)

    def claims(self, driver: MeasuredDriver, count: int, held: int) -> list[ClaimRef]:
        """Claims that are allocated, as if the scheduler had been there; each has a device that none of its next `held` has."""
        return [self._claim(driver, index, driver.device(index % held)) for index in range(count)]

    def clear_device_status(self, claims: Sequence[ClaimRef]) -> None:
        """Take away what drivers wrote into the claims' status, so that they have it to write again: a kubelet's claims are new."""
        told = {
            each["metadata"]["uid"] for each in self.kube.list(_API, "ResourceClaim") if each["status"].get("devices")
        }
        for claim in claims:
            if claim.uid in told:
                path = f"/apis/{_API}/namespaces/{claim.namespace}/resourceclaims/{claim.name}/status"
                change = {"status": {"devices": None}}
                self.kube.request("PATCH", path, body=change, content_type="application/merge-patch+json")

    def slices(self, driver: MeasuredDriver) -> list[Object]:
        """What the driver has published."""
        return self.kube.list(_API, "ResourceSlice", fieldSelector=f"spec.driver={driver.name}")

    def delete_slices(self, driver: MeasuredDriver) -> None:
        """Take the driver's slices away, as a kubelet does when it starts."""
        for each in self.slices(driver):
            self.kube.delete(each)

    def writes(self) -> int:
        """How often somebody has asked to write a slice since the API server started, by its own count."""
        text = str(self.kube.request("GET", "/metrics", timeout=30))
        return sum(int(line[1]) for line in _WRITES.finditer(text) if not _READS.search(line[0]))

    def _claim(self, driver: MeasuredDriver, index: int, device: str) -> ClaimRef:
        name = f"{driver.name}-{index}"
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        spec = {"devices": {"requests": [request]}}
        meta = {"name": name, "namespace": "default"}
        made = self.kube.create({"apiVersion": _API, "kind": "ResourceClaim", "metadata": meta, "spec": spec})
        result = {"request": "gpu", "driver": driver.name, "pool": _NODE, "device": device}
        self.kube.update({**made, "status": {"allocation": {"devices": {"results": [result]}}}}, subresource="status")
        return ClaimRef("default", name, made["metadata"]["uid"])


@contextlib.contextmanager
def start_bare_cluster(kubernetes: str, progress: Progress) -> Iterator[BareCluster]:
    """An API server of that version with nothing else; it ends, and all of it goes, at the end."""
    lock = lock_for(kubernetes)
    programs = ensure(lock, ["etcd", "kube-apiserver"], progress=Silent())
    spec = ClusterSpec(lock.kubernetes, nodes=1)
    config = TestbedConfig(name=f"bench-{secrets.token_hex(3)}", kubernetes=kubernetes, nodes=1)
    with (
        tempfile.TemporaryDirectory(prefix="dra-testbed-bench-") as folder,
        temporary_cluster_folder(config, progress) as cluster,
    ):
        with progress.step(f"etcd and API server {lock.kubernetes}"):
            made = creation.start_control_plane(config.name, spec, Artifacts(programs), cluster)
            creation.wait_for_api_server(made)
            bare = BareCluster(
                Path(folder), Kube(made.kubeconfig), _write_authority(Path(folder), made.kubeconfig), lock.kubernetes
            )
            _create_node_and_token(bare)
        yield bare


def _create_node_and_token(bare: BareCluster) -> None:
    """A node, and a token that may do everything: the same one for each driver."""

    def account() -> Object:
        if not bare.kube.find("v1", "Namespace", "default"):
            raise NotYet("no namespace default")
        return bare.kube.create(_named("v1", "ServiceAccount", "bench", namespace="default"))

    eventually(account, "the namespace default", _BOOTSTRAP, longest_pause=0.1)
    bare.kube.create(_named("v1", "Node", _NODE))
    bare.kube.create(
        _named("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "bench")
        | {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "bench", "namespace": "default"}],
        }
    )
    path = "/api/v1/namespaces/default/serviceaccounts/bench/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}
    token = bare.kube.request("POST", path, body=asked)["status"]["token"]
    (bare.folder / "token").write_text(token)
    _write_kubeconfig(bare, token)


def _write_authority(folder: Path, kubeconfig: Path) -> str:
    """Lay out the API server's certificate authority; returns its address."""
    cluster = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]
    (folder / "authority.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    return str(cluster["server"])


def _write_kubeconfig(bare: BareCluster, token: str) -> None:
    cluster = {"server": bare.server, "certificate-authority": str(bare.folder / "authority.crt")}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": "bench", "user": {"token": token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    (bare.folder / "kubeconfig").write_text(json.dumps(content))


def _named(api_version: str, kind: str, name: str, **more: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **more}}


def count_published_devices(slices: Sequence[Object]) -> int:
    """How many devices complete pools hold; a pool that is being rewritten counts nothing."""
    generations = {each["spec"]["pool"]["generation"] for each in slices}
    complete = len(generations) == 1 and len(slices) == slices[0]["spec"]["pool"]["resourceSliceCount"]
    return sum(len(each["spec"].get("devices", ())) for each in slices) if complete else 0

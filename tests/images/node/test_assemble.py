from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed import binaries, process
from testbed.binaries import Lock
from testbed.errors import TestbedError
from testbed.images import basics, tarball
from testbed.images.node import assemble, kind_files, root, system_images
from testbed.images.node.kind_files import KindFiles
from testbed.images.oci import Image
from testbed.images.store import CacheEntry
from testbed.progress import Silent

KUBEADM = (
    "echo registry/etcd:3; echo registry/kube-proxy:v1; echo registry/pause:3.10.2; echo registry/coredns/coredns:v1"
)


CHECK_TOOLS = root.check_tools


@pytest.fixture
def calls(
    tmp_path: Path,
    debian: Path,
    kind: KindFiles,
    sandbox: Image,
    program: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> list[Any]:
    """Fake the inputs of the image without a compiler, a mirror or containerd; return the names that were requested."""
    calls: list[Any] = []

    def ensure(lock: Lock, names: Sequence[str], **how: object) -> dict[str, Path]:
        calls.append(list(names))
        bodies = {"kubeadm": KUBEADM, "ctr": """echo '{"process": {}}'"""}
        return {name: program(name, bodies.get(name, f"echo {name}")) for name in names}

    def preload(
        programs: object, archives: Sequence[Path], names: Sequence[str], scratch: Path
    ) -> list[tarball.Member]:
        calls.append(list(names))
        return [tarball.file("var/lib/containerd/meta.db", b"names")]

    layer = tmp_path / "debian.tar"
    process.run(["tar", "--create", "--file", layer, "--directory", debian, "."])
    monkeypatch.setattr(binaries, "ensure", ensure)
    monkeypatch.setattr(basics, "sandbox", lambda progress: sandbox)
    monkeypatch.setattr(root, "check_tools", lambda: None)
    monkeypatch.setattr(root, "layer", lambda step: CacheEntry(layer, {"digest": "sha256:00"}, layer.stat().st_size))
    monkeypatch.setattr(kind_files, "fetch", lambda *given: kind)
    monkeypatch.setattr(assemble, "preload", preload)
    return calls


def test_the_upper_layer_has_kinds_files_our_files_programs_and_images(
    calls: list[Any], lock: Lock, progress: Silent, tmp_path: Path, read_archive: Callable[[Path], Any]
) -> None:
    image = assemble.node(lock, progress)

    upper = read_archive(image.archive).layer(1, tmp_path)
    assert {
        "usr/local/bin/entrypoint", "kind/bin/pod-network", "kind/version", "etc/containerd/cri-base.json", "usr/bin/kubelet",
        "usr/local/bin/crictl", "usr/local/sbin/runc", "opt/cni/bin/ptp", "var/lib/containerd/meta.db",
    } < set(upper)  # fmt: skip
    assert upper["usr/bin/kubelet"].mode == 0o755


def test_the_image_starts_as_kind_expects(
    calls: list[Any], lock: Lock, progress: Silent, read_archive: Callable[[Path], Any]
) -> None:
    config = read_archive(assemble.node(lock, progress).archive).config

    assert config["config"]["Entrypoint"] == ["/usr/local/bin/entrypoint", "/sbin/init"]
    assert config["config"]["Env"] == ["container=docker"]
    assert config["config"]["StopSignal"] == "SIGRTMIN+3"
    assert config["rootfs"]["diff_ids"][0] == "sha256:00"


def test_the_node_has_the_images_of_kubeadm_and_the_sandbox_image_of_containerd(
    calls: list[Any], lock: Lock, progress: Silent
) -> None:
    assemble.node(lock, progress)

    assert calls[1] == [
        "registry/etcd:3", "registry/kube-proxy:v1", "registry/pause:3.10.2", "registry/coredns/coredns:v1",
        "registry.k8s.io/pause:3.10",
    ]  # fmt: skip


def test_a_cached_image_is_not_rebuilt(calls: list[Any], lock: Lock, progress: Silent) -> None:
    first = assemble.node(lock, progress)
    before = len(calls)

    assert assemble.node(lock, progress) == first == assemble.cached_node(lock)
    assert len(calls) == before


def test_a_missing_program_is_reported_before_anything_is_fetched_or_built(
    calls: list[Any], lock: Lock, progress: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root, "check_tools", CHECK_TOOLS)
    monkeypatch.setattr(binaries, "ensure", lambda *_, **__: pytest.fail("programs were fetched"))
    monkeypatch.setattr(assemble, "cached_node", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(TestbedError, match="mmdebstrap was not found"):
        assemble.node(lock, progress)
    assert calls == []


def test_an_image_that_was_never_built_is_not_cached(lock: Lock) -> None:
    assert assemble.cached_node(lock) is None


def test_the_name_has_the_version_and_changes_with_the_content(lock: Lock, monkeypatch: pytest.MonkeyPatch) -> None:
    before = assemble._reference(lock)
    monkeypatch.setattr(assemble, "RECIPE", assemble.RECIPE + 1)

    assert before.startswith("localhost/dra-testbed/node:v1.37.1-")
    assert assemble._reference(lock) != before


def test_another_version_of_a_program_gives_another_image(lock: Lock) -> None:
    runc = lock.program("runc")
    newer = runc.model_copy(update={"upstream": runc.upstream.model_copy(update={"version": "9.9.9"})})
    other = lock.model_copy(update={"programs": {**lock.programs, "runc": newer}})

    assert assemble._key(other) != assemble._key(lock)


def test_a_runc_that_needs_a_newer_c_library_is_left_out(
    calls: list[Any],
    lock: Lock,
    progress: Silent,
    tmp_path: Path,
    read_archive: Callable[[Path], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make = binaries.ensure

    def ensure(*given: Any, **how: Any) -> dict[str, Path]:
        programs = make(*given, **how)
        programs["runc"].write_text("built on a newer host")
        return programs

    monkeypatch.setattr(binaries, "ensure", ensure)
    image = assemble.node(lock, progress)

    assert "usr/local/sbin/runc" not in read_archive(image.archive).layer(1, tmp_path)


def test_an_image_can_be_built_without_coredns(calls: list[Any], lock: Lock, progress: Silent) -> None:
    programs = {name: program for name, program in lock.programs.items() if name != "coredns"}

    assemble.node(lock.model_copy(update={"programs": programs}), progress)

    assert "coredns" not in calls[0]
    assert "coredns" not in [system_images.component(name) for name in calls[1]]

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.binaries import Lock
from testbed.binaries.sources import Unavailable
from testbed.binaries.toolchain import Go
from testbed.errors import TestbedError
from testbed.images.node import kind_files
from testbed.images.node.kind_files import KindFiles
from testbed.images.tarball import Member
from testbed.progress import Step


def _members(kind: KindFiles) -> dict[str, Member]:
    return {member.path: member for member in kind.members()}


def test_only_programs_are_executable(kind: KindFiles) -> None:
    members = _members(kind)

    assert members["usr/local/bin/entrypoint"].mode == members["kind/bin/hook.sh"].mode == 0o755
    assert members["etc/systemd/system/kubelet.service"].mode == 0o644
    assert {"etc/kubernetes/manifests", "etc/cdi"} < set(members)


def test_units_are_enabled_and_masked_as_the_dockerfile_says(kind: KindFiles) -> None:
    members = _members(kind)

    enabled = members["etc/systemd/system/multi-user.target.wants/kubelet.service"]
    assert enabled.target == "/etc/systemd/system/kubelet.service"
    assert members["etc/systemd/system/systemd-binfmt.service"].target == "/dev/null"


def test_containerd_has_cdi_nri_and_restricted_oom_scores(kind: KindFiles) -> None:
    plugins = tomllib.loads(kind.containerd_configuration())["plugins"]

    assert plugins["io.containerd.grpc.v1.cri"] == {
        "sandbox_image": "registry.k8s.io/pause:3.10",
        "restrict_oom_score_adj": True,
        "enable_cdi": True,
        "cdi_spec_dirs": ["/etc/cdi", "/var/run/cdi"],
    }
    assert plugins["io.containerd.nri.v1.nri"] == {"disable": False}
    assert kind.sandbox_image() == "registry.k8s.io/pause:3.10"


def test_a_containerd_configuration_in_an_unexpected_format_is_an_error(kind: KindFiles) -> None:
    (kind.base / "files/etc/containerd/config.toml").write_text('[plugins."io.containerd.grpc.v1.cri"]\n')

    with pytest.raises(TestbedError, match="unexpected format"):
        kind.containerd_configuration()


def test_the_base_spec_has_kinds_hook_and_no_rlimits(program: Callable[[str, str], Path]) -> None:
    ctr = program("ctr", """echo '{"process": {"args": ["sh"], "rlimits": [{"soft": 1024}]}}'""")

    spec = json.loads(kind_files.base_spec(ctr))

    assert spec["process"] == {"args": ["sh"]}
    assert spec["hooks"] == {"createContainer": [{"path": "/kind/bin/mount-product-files.sh"}]}


def _fetch_with(go: Path, lock: Lock, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> KindFiles:
    monkeypatch.setattr(kind_files, "find_go", lambda *asked: Go(go, (1, 26)))
    return kind_files.fetch(lock, scratch, Step("test"))


def test_kinds_module_is_downloaded_with_the_committed_go_sum(
    lock: Lock, tmp_path: Path, program: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    go = program("go", f"""echo "$@" >{tmp_path}/asked; cp go.sum {tmp_path}; echo '{{"Dir": "/modules/kind"}}'""")

    fetched = _fetch_with(go, lock, tmp_path, monkeypatch)

    assert fetched.base == Path("/modules/kind/images/base")
    assert (tmp_path / "asked").read_text().split() == ["mod", "download", "-json", "sigs.k8s.io/kind"]
    assert f"sigs.k8s.io/kind v{lock.program('kind').version} h1:" in (tmp_path / "go.sum").read_text()


def test_the_error_for_a_failed_download_has_the_reason_and_a_hint(
    lock: Lock, tmp_path: Path, program: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    go = program("go", """echo '{"Error": "dial tcp: lookup proxy: no such host"}'; exit 1""")

    with pytest.raises(
        TestbedError, match=r"(?s)cannot download the Go module sigs.k8s.io/kind, .*: dial tcp: .*GOPROXY"
    ):
        _fetch_with(go, lock, tmp_path, monkeypatch)


def test_the_error_for_a_missing_go_has_the_hint_of_the_toolchain(
    lock: Lock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*asked: object) -> Go:
        raise Unavailable("Go >= 1.24 is needed, there is no go command", hint="install Go >= 1.24")

    monkeypatch.setattr(kind_files, "find_go", refuse)

    with pytest.raises(TestbedError, match=r"(?s)there is no go command.*install Go >= 1\.24"):
        kind_files.fetch(lock, tmp_path, Step("test"))

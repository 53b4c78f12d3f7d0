"""Fakes for the tests of the node image: a root file system whose loader is a shell script, kind's module, and shell scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.binaries import Lock, lock_for
from testbed.images.node.kind_files import KindFiles
from testbed.images.oci import ContainerSettings, Image, configuration, write_archive, write_layer
from testbed.images.tarball import file

LIBRARIES = "usr/lib/x-linux-gnu"

# Lists one library of the root, one of the host, and the vDSO; fails for programs that were built for a newer C library.
LOADER = """#!/bin/sh
case "$(cat "$4")" in
  *newer*) echo "version GLIBC_9 not found" >&2; exit 1 ;;
  *) printf '\\tlinux-vdso.so.1 (0x1)\\n\\tlibc.so.6 => %s/libc.so.6 (0x2)\\n\\tother.so => /usr/lib/other.so (0x3)\\n' "$2" ;;
esac
"""

CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  # use fixed sandbox image
  sandbox_image = "registry.k8s.io/pause:3.10"
  restrict_oom_score_adj = false
"""

DOCKERFILE = """FROM scratch
RUN systemctl enable kubelet.service \\
    && systemctl mask systemd-binfmt.service
"""


@pytest.fixture
def lock() -> Lock:
    return lock_for("1.37")


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    """Return an unpacked root file system."""
    root = tmp_path / "debian"
    files = {
        f"{LIBRARIES}/ld-linux-x.so.2": LOADER,
        f"{LIBRARIES}/libc.so.6": "libc",
        f"{LIBRARIES}/xtables/libxt_comment.so": "an extension",
        **{f"usr/sbin/{name}": name for name in ("xtables-nft-multi", "xtables-legacy-multi", "nft", "conntrack")},
        "usr/bin/dash": "a shell",
        **{f"etc/{name}": name for name in ("protocols", "services", "nsswitch.conf")},
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / LIBRARIES / "ld-linux-x.so.2").chmod(0o755)
    (root / "usr/lib64").mkdir()
    (root / "usr/lib64/ld-linux-x.so.2").symlink_to(f"/{LIBRARIES}/ld-linux-x.so.2")
    return root


@pytest.fixture
def kind(tmp_path: Path) -> KindFiles:
    """Return a fake of the folder images/base in kind's module."""
    base = tmp_path / "kind"
    files = {
        "Dockerfile": DOCKERFILE,
        "files/etc/containerd/config.toml": CONTAINERD,
        "files/etc/systemd/system/kubelet.service": "[Service]\nExecStart=x\n[Install]\nWantedBy=multi-user.target\n",
        "files/kind/bin/hook.sh": "#!/bin/sh\n",
        "files/usr/local/bin/entrypoint": "#!/bin/bash\n",
    }
    for path, text in files.items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_text(text)
    return KindFiles(base)


@pytest.fixture
def sandbox(tmp_path: Path) -> Image:
    """Return a sandbox image."""
    layer = write_layer([file("bin/busybox", b"sleeps")], tmp_path / "sandbox-layer.tar")
    archive = tmp_path / "sandbox.tar"
    digest = write_archive(
        "localhost/sandbox:1", configuration(ContainerSettings(), [layer], ["busybox"]), [layer], archive
    )
    return Image("sandbox", "localhost/sandbox:1", archive, digest)


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that writes a shell script."""

    def write(name: str, body: str) -> Path:
        path = tmp_path / f"program-{name}"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return write

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.images.node import root
from testbed.images.store import Store
from testbed.progress import Step

Script = Callable[[str, str], Path]

# Logs its arguments, writes the layer, and copies the list of mirrors.
MMDEBSTRAP = """printf '%s\\n' "$@" >{log}
echo 'I: extracting archives...' >&2
for word; do case $word in */content.tar) echo made >"$word" ;; */sources.list) cp "$word" {sources} ;; esac; done
"""


@pytest.fixture
def host(tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fake a host with mmdebstrap; return the log of its arguments."""
    log = tmp_path / "log"
    script("mmdebstrap", MMDEBSTRAP.format(log=log, sources=tmp_path / "sources"))
    script("setpriv", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
    script("unshare", 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"')
    script("apt-config", "true")
    script("apt-get", "true")
    (tmp_path / "keyring").write_text("keys")
    monkeypatch.setattr(root, "_KEYRING", tmp_path / "keyring")
    monkeypatch.setattr(root, "_host_has_same_release", lambda: False)
    return log


def test_the_layer_is_the_file_that_mmdebstrap_wrote(host: Path) -> None:
    entry = root.layer(Step("test"))

    assert entry.file.read_text() == "made\n"
    assert entry.facts["digest"] == "sha256:" + hashlib.sha256(b"made\n").hexdigest()
    arguments = host.read_text()
    assert "--variant=minbase" in arguments
    assert ",iptables,nftables,conntrack," in arguments
    assert "\nbookworm\n" in arguments


def test_the_layer_is_built_once(host: Path) -> None:
    first = root.layer(Step("test"))
    host.unlink()

    assert root.layer(Step("test")).file == first.file
    assert not host.exists()


@pytest.mark.parametrize(("user", "mode"), [(0, "root"), (1000, "unshare")])
def test_root_needs_no_user_namespaces(host: Path, user: int, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)

    root.layer(Step("test"))

    assert f"--mode={mode}\n" in host.read_text()


def test_the_mirrors_of_a_host_with_the_same_debian_release_are_used(
    host: Path, tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root, "_host_has_same_release", lambda: True)
    lines = (
        "http://mirror/debian/ bookworm main Debian", "http://mirror/debian/ bookworm-updates main Debian",
        "http://mirror/security/ bookworm-security main Debian", "http://vendor/apt bookworm stable Vendor",
        "http://other/apt nodistro main . nodistro", "http://mirror/debian/ bookworm main Debian",
        "http://pg/apt bookworm-pgdg main apt.postgresql.org", "http://tools/apt bookworm main Tools", "http://none/apt bookworm main ",
        "http://half/apt bookworm main Debian Backports", "http://mirror/debian/ bookworm-backports main Debian Backports",
        "http://mirror/debian/ bookworm-proposed-updates main Debian", "http://mirror/debian/ bookworm contrib Debian",
    )  # fmt: skip
    script("apt-get", f"printf '%s\\n' {' '.join(repr(line) for line in lines)}")

    root.layer(Step("test"))

    assert (tmp_path / "sources").read_text().splitlines() == [
        "deb http://mirror/debian/ bookworm main",
        "deb http://mirror/debian/ bookworm-updates main",
        "deb http://mirror/security/ bookworm-security main",
    ]


def test_third_party_repositories_are_not_used_as_mirrors(
    host: Path, tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root, "_host_has_same_release", lambda: True)
    script("apt-get", "echo http://pg/apt bookworm-pgdg main apt.postgresql.org")

    root.layer(Step("test"))

    assert not (tmp_path / "sources").exists()


def test_apt_reports_the_origin_of_each_repository(
    host: Path, tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root, "_host_has_same_release", lambda: True)
    script("apt-get", f"printf '%s\\n' \"$@\" >{tmp_path}/asked")

    root.layer(Step("test"))

    assert "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)" in (tmp_path / "asked").read_text().splitlines()


def test_on_other_hosts_mmdebstrap_chooses_the_mirror(host: Path, tmp_path: Path) -> None:
    root.layer(Step("test"))

    assert not (tmp_path / "sources").exists()
    assert host.read_text().splitlines()[-2:][0] == "bookworm"


def test_only_the_network_settings_of_the_hosts_apt_are_passed_on(host: Path, script: Script) -> None:
    script(
        "apt-config",
        """echo 'Acquire::http::Proxy "http://proxy:3128";'; echo 'Acquire::IndexTargets::deb "";'; echo 'Acquire::Retries "";'""",
    )

    root.layer(Step("test"))

    assert [line for line in host.read_text().splitlines() if "Acquire" in line] == [
        '--aptopt=Acquire::http::Proxy "http://proxy:3128";'
    ]


def test_the_error_for_a_missing_mmdebstrap_has_a_hint(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(TestbedError, match="apt install mmdebstrap"):
        root.layer(Step("test"))


def test_the_error_for_missing_keys_of_debian_has_a_hint(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "_KEYRING", Path("/nowhere/keyring"))

    with pytest.raises(TestbedError, match="apt install debian-archive-keyring"):
        root.layer(Step("test"))


@pytest.mark.parametrize(
    ("said", "user", "message"),
    [
        (
            "Err:1 http://mirror bookworm InRelease\\n  Temporary failure resolving mirror\\nE: apt-get update failed",
            0,
            r"(?s)http://mirror bookworm InRelease: Temporary failure resolving mirror.*apt-get update",
        ),
        ("E: cannot find newuidmap", 1000, "(?s)cannot find newuidmap.*apt install uidmap"),
        ("E: tar: No space left on device", 0, "(?s)free disk space, or set DRA_TESTBED_CACHE"),
        ("E: mount: permission denied", 0, "(?s)mount: permission denied.*root may mount"),
    ],
)
def test_the_error_of_a_failed_mmdebstrap_has_the_reason_and_a_hint(
    host: Path, script: Script, monkeypatch: pytest.MonkeyPatch, said: str, user: int, message: str
) -> None:
    script("mmdebstrap", f"printf '%b\\n' 'I: starting' '{said}' >&2; exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: user)

    with pytest.raises(TestbedError, match=message):
        root.layer(Step("test"))

    assert Store().find("debian", root.key()) is None


def test_another_list_of_packages_gives_another_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    before = root.key()
    monkeypatch.setattr(root, "PACKAGES", (*root.PACKAGES, "vim"))

    assert root.key() != before

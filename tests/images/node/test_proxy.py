from __future__ import annotations

from pathlib import Path

import pytest

from testbed import process
from testbed.images.node import proxy
from testbed.images.tarball import Member


def _members(debian: Path) -> dict[str, Member]:
    return {member.path: member for member in proxy.members(debian, debian / "usr/sbin/nft")}


def test_the_image_has_the_tools_their_libraries_and_extensions(debian: Path) -> None:
    members = _members(debian)

    assert {
        "opt/kube-proxy", "usr/sbin/nft", "usr/sbin/xtables-nft-multi", "usr/sbin/xtables-legacy-multi", "usr/bin/dash",
        "usr/lib/x-linux-gnu/libc.so.6", "usr/lib/x-linux-gnu/ld-linux-x.so.2", "usr/lib/x-linux-gnu/xtables/libxt_comment.so",
        "etc/protocols",
    } < set(members)  # fmt: skip
    assert members["opt/tables/nft/ip6tables-restore"].target == "/usr/sbin/xtables-nft-multi"
    assert members["opt/tables/legacy/iptables"].target == "/usr/sbin/xtables-legacy-multi"


def test_the_loader_is_linked_where_the_architecture_expects_it(debian: Path) -> None:
    members = _members(debian)

    assert members["lib64"].target == "usr/lib64"
    assert members["usr/lib64/ld-linux-x.so.2"].target == "/usr/lib/x-linux-gnu/ld-linux-x.so.2"


@pytest.mark.parametrize(("legacy", "nft", "mode"), [(0, 3, "nft"), (3, 1, "legacy"), (0, 0, "legacy")])
def test_kube_proxy_uses_the_tables_that_have_more_rules(tmp_path: Path, legacy: int, nft: int, mode: str) -> None:
    for tables, rules in (("legacy", legacy), ("nft", nft)):
        (tmp_path / "tables" / tables).mkdir(parents=True)
        for name in ("iptables-save", "ip6tables-save"):
            save = tmp_path / "tables" / tables / name
            save.write_text("#!/bin/sh\necho '*nat'\n" + "echo '-A CHAIN -j RETURN'\n" * rules)
            save.chmod(0o755)
    (tmp_path / "kube-proxy").write_text('#!/bin/sh\necho "$1 ${PATH%%:*}"\n')
    (tmp_path / "kube-proxy").chmod(0o755)
    start = next(
        member for member in proxy.members(_empty(tmp_path), tmp_path / "kube-proxy") if "local" in member.path
    )
    assert isinstance(start.content, bytes)

    said = process.run(["sh", "-c", start.content.decode().replace("/opt/", f"{tmp_path}/"), "sh", "--config"])

    assert said.stdout.strip() == f"--config {tmp_path}/tables/{mode}"


def _empty(tmp_path: Path) -> Path:
    """Return a root whose loader lists no libraries."""
    loader = tmp_path / "root/usr/lib/x/ld-linux-x.so.2"
    loader.parent.mkdir(parents=True)
    loader.write_text("#!/bin/sh\n")
    loader.chmod(0o755)
    return tmp_path / "root"

"""The content of kube-proxy's image: the program, iptables and nft, and their libraries. Used by system_images.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from testbed.images import tarball
from testbed.images.node.libraries import Libraries
from testbed.images.tarball import Member

_SHELL = "usr/bin/dash"
_NFT, _LEGACY = "usr/sbin/xtables-nft-multi", "usr/sbin/xtables-legacy-multi"
_TOOLS = (_SHELL, _NFT, _LEGACY, "usr/sbin/nft", "usr/sbin/conntrack")
_TABLES = [f"{tables}{act}" for tables in ("iptables", "ip6tables") for act in ("", "-save", "-restore")]

# nft looks up protocol numbers in /etc.
_ETC = ("etc/protocols", "etc/services", "etc/nsswitch.conf")

# kubeadm starts /usr/local/bin/kube-proxy. It must use the same tables (nft or legacy) as the node. kind's entrypoint chose those
# that had more rules, so this script counts the rules in the same way.
_START = """#!/bin/sh
rules() { n=0; while read -r word rest; do case $word in -*) n=$((n + 1)) ;; esac; done; echo "$n"; }
legacy=$({ /opt/tables/legacy/iptables-save; /opt/tables/legacy/ip6tables-save; } 2>/dev/null | rules)
nft=$({ /opt/tables/nft/iptables-save; /opt/tables/nft/ip6tables-save; } 2>/dev/null | rules)
if [ "$legacy" -ge "$nft" ]; then mode=legacy; else mode=nft; fi
PATH=/opt/tables/$mode:$PATH exec /opt/kube-proxy "$@"
"""


def members(root: Path, kube_proxy: Path) -> list[Member]:
    """Return the content of the image; `root` is an unpacked Debian that has the tools."""
    libraries = Libraries(root)
    tools = [root / tool for tool in _TOOLS]
    extensions = sorted((root / "usr/lib").glob("*/xtables/*.so"))
    needed = {*tools, *extensions, *libraries.needed_by([*tools, *extensions]), libraries.loader()}
    return [
        tarball.file("usr/local/bin/kube-proxy", _START, 0o755),
        tarball.file("opt/kube-proxy", kube_proxy, 0o755),
        tarball.link("usr/bin/sh", "dash"),
        tarball.folder("run"),
        tarball.folder("tmp", 0o1777),
        *(tarball.file(str(path.relative_to(root)), path.resolve(), 0o755) for path in needed),
        *(tarball.file(path, root / path) for path in _ETC),
        *_links(root, libraries.loader()),
    ]


def _links(root: Path, loader: Path) -> Iterator[Member]:
    for name in ("bin", "sbin", "lib", "lib64"):
        yield tarball.link(name, f"usr/{name}")
    for mode, tool in (("nft", _NFT), ("legacy", _LEGACY)):
        for name in _TABLES:
            yield tarball.link(f"opt/tables/{mode}/{name}", f"/{tool}")
    for folder in ("usr/lib", "usr/lib64"):  # where programs look for the loader depends on the architecture
        for path in sorted((root / folder).glob("ld-linux*.so.*")):
            yield tarball.link(f"{folder}/{path.name}", f"/{loader.relative_to(root)}")
    yield tarball.folder("usr/lib64")

"""Checks that kube-proxy can write its rules in the network namespaces of nodes. Called by preflight and when a cluster is created."""

from __future__ import annotations

import re
from pathlib import Path

from testbed import process
from testbed.errors import CommandFailed
from testbed.providers.base import HostProblem

_OLDEST_KERNEL, _OLDEST_NFT = (5, 13), (1, 0, 1)  # kube-proxy refuses older ones
# One of each kind of rule that kube-proxy writes.
_RULES = """
add table ip probe
add set ip probe affinity { type ipv4_addr; flags dynamic,timeout; timeout 1s; }
add map ip probe services { type ipv4_addr . inet_proto . inet_service : verdict; }
add chain ip probe endpoint
add rule ip probe endpoint update @affinity { ip saddr } meta l4proto tcp dnat to 192.0.2.1:80
add chain ip probe refusals { type filter hook forward priority 0; }
add rule ip probe refusals ct state new reject
add chain ip probe incoming { type nat hook prerouting priority -100; }
add rule ip probe incoming ip daddr . meta l4proto . th dport vmap @services
add rule ip probe incoming fib daddr type local numgen random mod 1 vmap { 0 : goto endpoint }
add chain ip probe outgoing { type nat hook postrouting priority 100; }
add rule ip probe outgoing meta mark 1 masquerade fully-random
"""


def lacking(kernel: tuple[int, int], nft: Path | None) -> list[HostProblem]:
    """Return what prevents kube-proxy from working with this nft on this host: nothing, or one problem that is not fatal."""
    if kernel < _OLDEST_KERNEL:
        return [_problem(f"kernel {kernel[0]}.{kernel[1]} is older than 5.13", "use a newer kernel")]
    if nft is None:
        return [_problem("nft is not installed", "apt install nftables")]
    if _version(nft) < _OLDEST_NFT:
        return [_problem(f"{nft} is older than 1.0.1", "install a newer nftables")]
    refusal = _refusal(nft)
    cure = "modprobe -a nf_tables nft_chain_nat nft_fib_ipv4 nft_numgen nft_masq nft_reject_ipv4 nft_ct"
    return [_problem(f"the kernel refuses nftables rules ({refusal})", cure)] if refusal else []


def _problem(what: str, cure: str) -> HostProblem:
    loss = "Services of testbeds have no virtual addresses, except for `kubernetes` and `kube-dns`"
    return HostProblem(f"{what}, so kube-proxy is not started: {loss}", cure, fatal=False)


def _version(nft: Path) -> tuple[int, ...]:
    found = re.search(r"\d+(?:\.\d+)+", process.run([nft, "--version"], check=False).stdout)
    return tuple(map(int, found[0].split("."))) if found else (0,)


def _refusal(nft: Path) -> str:
    """Write rules in a new network namespace, which ends with the command; return why the kernel refused them, or ''."""
    try:
        done = process.run(["unshare", "--net", "--", nft, "-f", "-"], input=_RULES, check=False)
    except (CommandFailed, OSError) as failed:
        return str(failed)
    return "" if done.ok else next(iter(done.stderr.strip().splitlines()), f"exit {done.code}")

"""The check for netfilter, with the real nft where this host has it, and with programs in its place."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from testbed import process
from testbed.providers.local.services import netfilter

NEW = (6, 18)


def nft(folder: Path, version: str) -> Path:
    """Put an nft that prints this version into the folder."""
    (folder / "nft").write_text(f"#!/bin/sh\necho nftables v{version}\n")
    (folder / "nft").chmod(0o755)
    return folder / "nft"


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("nft"), reason="needs root and nft")
def test_the_rules_are_valid_and_leave_nothing_on_this_host() -> None:
    assert netfilter.lacking(NEW, Path(shutil.which("nft") or "")) == []
    assert process.run(["nft", "list", "tables"]).stdout.count("probe") == 0


def test_a_host_without_nft_gets_the_loss_and_the_cure() -> None:
    (problem,) = netfilter.lacking(NEW, None)

    assert problem.what.startswith(
        "nft is not installed, so kube-proxy is not started: Services of testbeds have no virtual addresses"
    )
    assert (problem.cure, problem.fatal) == ("apt install nftables", False)


def test_an_old_nft_and_an_old_kernel_are_reported(tmp_path: Path) -> None:
    old = nft(tmp_path, "0.9.8 (E.D.S.)")

    assert "is older than 1.0.1" in netfilter.lacking(NEW, old)[0].what
    assert "kernel 5.4 is older than 5.13" in netfilter.lacking((5, 4), old)[0].what


def test_a_kernel_that_refuses_the_rules_is_reported_with_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = process.Completed(("nft",), 1, "", "netlink: Error: cache initialization failed\nmore\n")
    version = process.Completed(("nft",), 0, "nftables v1.0.6", "")
    monkeypatch.setattr(process, "run", lambda argv, **_: version if "--version" in argv else refused)

    (problem,) = netfilter.lacking(NEW, tmp_path / "nft")

    assert "the kernel refuses nftables rules (netlink: Error: cache initialization failed)" in problem.what
    assert problem.cure.startswith("modprobe -a nf_tables")

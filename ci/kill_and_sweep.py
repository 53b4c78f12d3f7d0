#!/usr/bin/env python3
"""Kill `dra-testbed up` with SIGKILL at random moments, run `dra-testbed sweep`, and check that nothing is left.

Shares no code with the testbed. On kind, the nodes of other clusters must still run afterwards. For tests/e2e, and by hand.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import host_snapshot

TESTBED = [sys.executable, "-m", "testbed.cli.main"]
NAME = "kill-and-sweep"
Check = Callable[[], list[str]]  # returns what is wrong


@dataclass(frozen=True)
class Provider:
    """How `up` is called, and a function that looks at the host and returns a check for later."""

    up: list[str]
    look: Callable[[], Check]


def look_at_host() -> Check:
    """Return a check that reports everything that is new on the host."""
    before = host_snapshot.take()
    return lambda: host_snapshot.new_since(before)


def look_at_engine() -> Check:
    """Return a check that reports new volumes and marked processes, and every change of the kind nodes."""
    nodes, volumes, processes = kind_nodes(), engine_volumes(), host_snapshot.marked()
    return lambda: sorted((kind_nodes() ^ nodes) | (engine_volumes() - volumes) | (host_snapshot.marked() - processes))


def kind_nodes() -> set[str]:
    """Return all kind nodes with ID, name, cluster and state."""
    shown = 'node {{.ID}} {{.Names}} {{.Label "io.x-k8s.kind.cluster"}} {{.State}}'
    return docker("ps", "--all", "--filter", "label=io.x-k8s.kind.cluster", "--format", shown)


def engine_volumes() -> set[str]:
    """Return all volumes of the engine."""
    return docker("volume", "ls", "--format", "volume {{.Name}}")


def docker(*words: str) -> set[str]:
    """Return the lines that the docker client prints."""
    argv = ["docker", *words]
    return set(subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines())


PROVIDERS = {
    "local": Provider(["up", "--name", NAME], look_at_host),
    "kind": Provider(["up", "--name", NAME, "--provider", "kind", "--nodes", "1", "--driver", "none"], look_at_engine),
}


def dra_testbed(*words: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    """Run dra-testbed to its end."""
    return subprocess.run([*TESTBED, *words], check=check, capture_output=True, text=True)


def is_complete() -> bool:
    """Return True if `up` had finished before it was killed, so that sweep must keep the testbed."""
    status = dra_testbed("status", "--name", NAME, "-o", "json")
    return status.returncode == 0 and json.loads(status.stdout)["phase"] == "ready"


def one_round(provider: Provider, after: float) -> str:
    """Run one `up`, kill it and sweep; return "passed", "failed", or "too late" if `up` had finished before the kill."""
    check = provider.look()
    up = subprocess.Popen([*TESTBED, *provider.up], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if up.wait(after):
            print(f"up itself failed with exit code {up.returncode}")
            return "failed"
    except subprocess.TimeoutExpired:
        up.kill()
        up.wait()
    if is_complete():
        dra_testbed("down", "--name", NAME, check=True)
        return "too late"
    swept = dra_testbed("sweep")
    left = check()
    if swept.returncode or left:
        print(f"killed after {after:.2f} s\n{swept.stdout}{swept.stderr}", *left, sep="\n  ")
        return "failed"
    return "passed"


def main(provider: Provider, rounds: int, seed: int) -> int:
    """Run the rounds, with kills spread evenly over the duration of an `up`; repeat those that were too late."""
    chance = random.Random(seed)
    began = time.monotonic()
    dra_testbed(*provider.up, check=True)
    duration = time.monotonic() - began
    dra_testbed("down", "--name", NAME, check=True)
    print(f"an undisturbed up takes {duration:.1f} s; {rounds} kills during it, seed {seed}")
    counts = {"passed": 0, "failed": 0, "too late": 0}
    while counts["passed"] + counts["failed"] < rounds:
        counts[one_round(provider, chance.uniform(0.05, duration))] += 1
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", choices=PROVIDERS, default="local")
    parser.add_argument("rounds", type=int, nargs="?", default=10)
    parser.add_argument("seed", type=int, nargs="?", default=random.randrange(10**6), help="default: a random one")
    given = parser.parse_args()
    sys.exit(main(PROVIDERS[given.provider], given.rounds, given.seed))

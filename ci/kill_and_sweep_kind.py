#!/usr/bin/env python3
"""Kill `dra-testbed up --provider kind` with SIGKILL at random moments, sweep, and look whether anything is left.

    ci/kill_and_sweep_kind.py [ROUNDS] [SEED]

The look asks the engine itself and shares no code with the testbed. Kind clusters that were there before must all be there afterwards,
with the same containers, running.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

TESTBED = [sys.executable, "-m", "testbed.cli.main"]
NAME = "kill-kind"
UP = [*TESTBED, "up", "--provider", "kind", "--nodes", "1", "--driver", "none", "--name", NAME]


def nodes() -> dict[str, str]:
    """Every kind node that the engine knows: its id, and its name, cluster and state."""
    shown = '{{.ID}} {{.Names}} {{.Label "io.x-k8s.kind.cluster"}} {{.State}}'
    argv = ["docker", "ps", "--all", "--filter", "label=io.x-k8s.kind.cluster", "--format", shown]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return dict(line.split(" ", 1) for line in said.splitlines())


def volumes() -> set[str]:
    """Every volume of the engine."""
    argv = ["docker", "volume", "ls", "--quiet"]
    return set(subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split())


def marked() -> list[str]:
    """Processes that carry the testbed's mark and the name of this testbed's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"/{NAME}/cluster".encode() in (entry / "environ").read_bytes():
                found.append(f"process {entry.name}: {(entry / 'cmdline').read_bytes().replace(bytes(1), b' ')[:80]!r}")
        except OSError:
            continue
    return found


def is_whole() -> bool:
    """Whether `up` had done all before it was killed: then the testbed is there to stay, and no sweep may touch it."""
    status = [*TESTBED, "status", "--name", NAME, "-o", "json"]
    said = subprocess.run(status, check=False, capture_output=True, text=True)
    return said.returncode == 0 and json.loads(said.stdout)["phase"] == "ready"


def one_round(after: float) -> str:
    """One `up`, one kill, one sweep; returns what happened: killed, too late, or left."""
    before, kept = nodes(), volumes()
    up = subprocess.Popen(UP, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if up.wait(after):
            print(f"up itself failed with {up.returncode}")
            return "left"
    except subprocess.TimeoutExpired:
        up.kill()
        up.wait()
    if is_whole():
        subprocess.run([*TESTBED, "down", "--name", NAME], check=True, capture_output=True)
        return "too late"
    swept = subprocess.run([*TESTBED, "sweep"], check=False, capture_output=True, text=True)
    left = [*marked(), *(f"volume {name}" for name in volumes() - kept)]
    if swept.returncode or nodes() != before or left:
        print(f"killed after {after:.2f} s\n{swept.stdout}{swept.stderr}before {before}\nafter {nodes()}\n{left}")
        return "left"
    print(f"killed after {after:5.2f} s: nothing is left")
    return "killed"


def main(rounds: int, seed: int) -> int:
    """Spread the kills evenly over the time that an `up` takes."""
    chance = random.Random(seed)
    began = time.monotonic()
    subprocess.run(UP, check=True, capture_output=True)
    whole = time.monotonic() - began
    subprocess.run([*TESTBED, "down", "--name", NAME], check=True, capture_output=True)
    print(
        f"an undisturbed up takes {whole:.1f} s; {rounds} kills within it, seed {seed}; foreign nodes: {len(nodes())}"
    )
    counts = {"killed": 0, "too late": 0, "left": 0}
    while counts["killed"] + counts["left"] < rounds:
        counts[one_round(chance.uniform(0.3, whole))] += 1
    print(f"{counts['killed']} passed, {counts['left']} failed")
    return 1 if counts["left"] else 0


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(numbers[0] if numbers else 5, numbers[1] if len(numbers) > 1 else random.randrange(10**6)))

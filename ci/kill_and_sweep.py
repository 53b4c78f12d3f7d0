#!/usr/bin/env python3
"""Kill `dra-testbed up` with SIGKILL at random moments, sweep, and look whether anything is left.

    ci/kill_and_sweep.py [ROUNDS] [SEED]

The look is ci/leftovers.py, which shares no code with the testbed. A round whose `up` was done before its kill is done again.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LOOK = [sys.executable, str(Path(__file__).with_name("leftovers.py"))]
TESTBED = [sys.executable, "-m", "testbed.cli.main"]
NAME = "kill-and-sweep"


def is_whole() -> bool:
    """Whether `up` had done all before it was killed: then the testbed is there to stay, and no sweep may touch it."""
    status = [*TESTBED, "status", "--name", NAME, "-o", "json"]
    said = subprocess.run(status, check=False, capture_output=True, text=True)
    return said.returncode == 0 and json.loads(said.stdout)["phase"] == "ready"


def one_round(after: float, before: Path) -> str:
    """One `up`, one kill, one sweep; returns what happened: killed, too late, or left."""
    up = subprocess.Popen([*TESTBED, "up", "--name", NAME], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
    look = subprocess.run([*LOOK, "compare", str(before)], check=False, capture_output=True, text=True)
    if swept.returncode or look.returncode:
        print(f"killed after {after:.2f} s\n{swept.stdout}{swept.stderr}{look.stdout}")
        return "left"
    return "killed"


def main(rounds: int, seed: int) -> int:
    """Spread the kills evenly over the time that an `up` takes."""
    chance = random.Random(seed)
    began = time.monotonic()
    subprocess.run([*TESTBED, "up", "--name", NAME], check=True, capture_output=True)
    whole = time.monotonic() - began
    subprocess.run([*TESTBED, "down", "--name", NAME], check=True, capture_output=True)
    print(f"an undisturbed up takes {whole:.1f} s; {rounds} kills within it, seed {seed}")
    counts = {"killed": 0, "too late": 0, "left": 0}
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        subprocess.run([*LOOK, "snapshot", str(before)], check=True)
        while counts["killed"] + counts["left"] < rounds:
            counts[one_round(chance.uniform(0.05, whole), before)] += 1
    print(f"{counts['killed']} passed, {counts['left']} failed")
    return 1 if counts["left"] else 0


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(numbers[0] if numbers else 10, numbers[1] if len(numbers) > 1 else random.randrange(10**6)))

"""Gets the ResourceSlices of a hardware file from the fake driver, which runs as a process because the testbed never imports it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from testbed import folders
from testbed.errors import CommandFailed, UsageError
from testbed.kube.client import Object
from testbed.process import run


def expected_slices(file: Path, *nodes: str) -> list[Object]:
    """Return the slices that the fake driver would publish for these nodes and the network. Raise UsageError if the file is not valid."""
    paths = [str(folders.packages()), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = run(
        [
            sys.executable,
            "-P",
            "-m",
            "fake_driver.hardware",
            file,
            *(word for node in nodes for word in ("--node", node)),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        check=False,
    )
    if done.code == 2:
        raise UsageError(done.stderr.strip())
    if not done.ok:
        raise CommandFailed(done.argv, f"exit {done.code}", done.stderr)
    return list(json.loads(done.stdout)["items"])

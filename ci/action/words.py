"""The inputs of the action, INPUT_… in the environment, as words of `dra-testbed run`; for the steps `key` and `judge`."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

FLAGS = ("driver", "provider", "kubernetes", "nodes", "config", "kubeconfig")


def given(name: str) -> str:
    """An input of the action; '' when it was not given."""
    return os.environ.get(f"INPUT_{name.upper()}", "").strip()


def report() -> Path:
    """The report folder."""
    return Path(given("report") or "dra-testbed-report").absolute()


def of_run() -> list[str]:
    """What `dra-testbed run` is told."""
    flags = [f"--{name}={given(name)}" for name in FLAGS if given(name)]
    tiers = [f"--tier={tier}" for tier in re.split(r"[\s,]+", given("tier")) if tier]
    return [*flags, *tiers, f"--report={report()}", *shlex.split(given("arguments"))]


def installed(program: str) -> str:
    """A program of the environment that the step `install` made."""
    return str(Path(os.environ.get("DRA_TESTBED_BIN", ""), program))


def tell(name: str, value: str) -> None:
    """Set an output of the step."""
    with Path(os.environ["GITHUB_OUTPUT"]).open("a") as outputs:
        outputs.write(f"{name}={value}\n")

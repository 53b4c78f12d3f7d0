"""Turn the inputs of the action (variables INPUT_…) into arguments of `dra-testbed run`; for the steps `key` and `judge`."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

FLAGS = ("provider", "kubernetes", "nodes", "config", "kubeconfig")


def given(name: str) -> str:
    """Return an input of the action; '' if it was not given."""
    return os.environ.get(f"INPUT_{name.upper()}", "").strip()


def report() -> Path:
    """Return the report folder."""
    return Path(given("report") or "dra-testbed-report").absolute()


def run_arguments() -> list[str]:
    """Return the arguments of `dra-testbed run`."""
    flags = [f"--{name}={given(name)}" for name in FLAGS if given(name)]
    drivers = [f"--driver={each.strip()}" for each in given("driver").splitlines() if each.strip()]
    tiers = [f"--tier={tier}" for tier in re.split(r"[\s,]+", given("tier")) if tier]
    return [*drivers, *flags, *tiers, f"--report={report()}", *shlex.split(given("arguments"))]


def installed(program: str) -> str:
    """Return the path of a program in the environment of the step `install`."""
    return str(Path(os.environ.get("DRA_TESTBED_BIN", ""), program))


def write_output(name: str, value: str) -> None:
    """Write an output of the step."""
    with Path(os.environ["GITHUB_OUTPUT"]).open("a") as outputs:
        outputs.write(f"{name}={value}\n")

"""Several drivers of one installation, such as GPUs and NICs: the first driver file installs them, and each is judged.

REPORT/NAME   the report folder of the driver whose driver file has this name
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from testbed.bringup import Testbed
from testbed.drivers import expected_nodes, refuse_wrong_names, wait_ready
from testbed.errors import TestbedError, UsageError
from testbed.models.config import TestbedConfig
from testbed.models.driver_file import DriverFile, load_companions, load_driver_file
from testbed.models.run_request import RunRequest

# A driver that failed is worse than one without an answer, as in the result of one driver.
_WORST_FIRST = (UsageError.exit_code, 1, TestbedError.exit_code, 4, 0)


def worst(codes: Iterable[int]) -> int:
    """Return the worst exit code."""
    return min(codes, key=lambda code: _WORST_FIRST.index(code) if code in _WORST_FIRST else -1)


def with_report_folders(requests: Sequence[RunRequest]) -> list[RunRequest]:
    """Return the requests, each with a folder in the report folder. Raise UsageError if two driver files have the same name."""
    names = [load_driver_file(each.driver_file(each.new_testbed or TestbedConfig())).name for each in requests]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise UsageError(
            f"two driver files have the name {duplicates[0]}, but each needs a report folder of its own",
            hint="change metadata.name of one of them",
        )
    return [each.model_copy(update={"report": each.report / name}) for each, name in zip(requests, names, strict=True)]


def refuse_further_installations(first: Path | None, others: Sequence[Path]) -> None:
    """Raise UsageError if a further driver file installs its driver, unless the first one does that: as a companion."""
    if not others:
        return
    if first is None:
        raise UsageError("--driver none installs nothing for the other drivers", hint="leave it out")
    companions = {each.driver for each in load_companions(load_driver_file(first))}
    for found in map(load_driver_file, others):
        if found.install and found.driver not in companions:
            raise UsageError(
                f"driver file {found.name} installs its driver, but only the first of several driver files may do that",
                hint=f"set spec.install to installed: true in it, or list it under spec.companions of {load_driver_file(first).name}",
            )


def wait_until_ready(testbed: Testbed, driver_file: DriverFile) -> None:
    """Wait until a further driver is ready. Raise an error if it is not, or if its driver file has wrong names."""
    wait_ready(testbed.kube, driver_file, expected_nodes(testbed.kube, driver_file, testbed.kept_nodes))
    refuse_wrong_names(testbed.kube, driver_file)

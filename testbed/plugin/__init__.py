"""The pytest plugin (entry point pytest11). Without `--testbed` it does nothing but add options, in every project of this Python.

So this module imports nothing but pytest. The other modules are imported when there is a run request.
"""

from __future__ import annotations

import os
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `pytest suites`."""
    group = parser.getgroup("dra-testbed", "judge a DRA driver")
    group.addoption(
        "--testbed", dest="dra_testbed", metavar="NAME", help="the testbed to judge on (dra-testbed up makes one)"
    )
    group.addoption(
        "--driver",
        dest="dra_driver",
        metavar="NAME|FILE",
        help="a driver that comes with dra-testbed, or a driver file; default: the testbed's own driver",
    )
    group.addoption(
        "--report", dest="dra_report", metavar="DIR", default="dra-testbed-report", help="the report folder"
    )
    group.addoption(
        "--patience", dest="dra_patience", metavar="X", type=float, default=1.0, help="multiply every timeout by X"
    )
    group.addoption(
        "--profile",
        dest="dra_profile",
        metavar="NAME",
        help="smoke, core or full; default: core, or full with -k, -m or --tier",
    )
    group.addoption(
        "--tier", dest="dra_tiers", metavar="TIER", action="append", default=[], help="only this tier; repeatable"
    )
    group.addoption(
        "--fail-on",
        dest="dra_fail_on",
        metavar="must|should|may",
        help="the lowest level of a requirement whose failure fails the run; default: must",
    )
    group.addoption(
        "--known",
        dest="dra_known",
        action="store_true",
        help="failures that the driver file lists under `known` do not affect the exit code",
    )
    group.addoption(
        "--failed",
        dest="dra_failed",
        metavar="REPORT",
        help="only what failed in the report in this folder, or has no answer there",
    )
    group.addoption(
        "--no-check",
        dest="dra_check",
        action="store_false",
        default=None,
        help="do not compare first what the probe shows with and without a device on each node",
    )
    group.addoption(
        "--run-request",
        dest="dra_run_request",
        metavar="JSON",
        help="the request of `dra-testbed run`, instead of all options above",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start judging if a testbed is named."""
    if _judges(config):
        from testbed.plugin import startup  # noqa: PLC0415 - not in other projects

        startup.start(config)
    elif config.option.dra_driver and not config.option.collectonly:
        raise pytest.UsageError(
            "--driver needs a testbed on which to judge the driver: add --testbed NAME (`dra-testbed up` makes one)"
        )


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return the number of workers for `-n auto`, which cores and devices limit."""
    if not _judges(config) or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    from testbed.plugin import decision  # noqa: PLC0415 - not in other projects

    return decision.workers(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Add markers to tests that check a requirement, so that -m works with and without a testbed."""
    if hasattr(_function(item), "dra_requirement"):
        from testbed.plugin import markers  # noqa: PLC0415 - not in other projects

        markers.add_markers(item, _function(item))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let -k with the ID of a requirement select nothing else: pytest matches parts of names, and UNPREP-004 contains PREP-004."""
    wanted = config.option.keyword.strip().upper()
    exact = [item for item in items if wanted and getattr(_function(item), wanted, None) is True]
    others = [item for item in items if item not in exact] if exact else []
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = exact


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to run suites without a testbed, with one error for all tests."""
    config = session.config
    if _judges(config) or config.option.collectonly:
        return
    if any(hasattr(_function(item), "dra_requirement") for item in session.items):
        raise pytest.UsageError(
            "these tests judge a DRA driver and need a testbed: add --testbed NAME, or use `dra-testbed run`, which makes one"
        )


def _judges(config: pytest.Config) -> bool:
    option = config.option
    return bool(option.dra_testbed or option.dra_run_request) and not option.collectonly


def _function(item: pytest.Item) -> Any:
    return getattr(item, "function", None)

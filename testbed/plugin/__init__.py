"""The pytest plugin (entry point pytest11). Inert unless `--testbed` is given: in every other project it adds options and does nothing.

So this module imports nothing but pytest; all else is loaded when there is something to judge.
"""

from __future__ import annotations

import os
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of `pytest suites`."""
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
    group.addoption("--patience", dest="dra_patience", metavar="X", type=float, default=1.0, help="stretch every wait")
    group.addoption(
        "--profile",
        dest="dra_profile",
        metavar="NAME",
        help="core or full; default: core, or full with -k, -m or --tier",
    )
    group.addoption(
        "--tier", dest="dra_tiers", metavar="TIER", action="append", default=[], help="only this tier; repeatable"
    )
    group.addoption(
        "--fail-on",
        dest="dra_fail_on",
        metavar="must|should|may",
        help="exit code 1 only if a requirement of this level or a higher one fails; default: may",
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
        from testbed.plugin import startup  # noqa: PLC0415 - inert until now

        startup.start(config)
    elif config.option.dra_driver and not config.option.collectonly:
        raise pytest.UsageError(
            "--driver says whom to judge, but not where: add --testbed NAME (dra-testbed up makes one)"
        )


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """`-n auto`: so many as cores and devices allow."""
    if not _judges(config) or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    from testbed.plugin import decision  # noqa: PLC0415 - inert until now

    return decision.workers(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests that check a requirement get its markers, so that -m works, with and without a testbed."""
    if hasattr(_function(item), "dra_requirement"):
        from testbed.plugin import markers  # noqa: PLC0415 - inert until now

        markers.add_markers(item, _function(item))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Whoever runs our tests without a testbed learns what is missing, once and not once per test."""
    config = session.config
    if _judges(config) or config.option.collectonly:
        return
    if any(hasattr(_function(item), "dra_requirement") for item in session.items):
        raise pytest.UsageError(
            "these tests judge a DRA driver: add --testbed NAME, or use `dra-testbed run`, which makes one"
        )


def _judges(config: pytest.Config) -> bool:
    option = config.option
    return bool(option.dra_testbed or option.dra_run_request) and not option.collectonly


def _function(item: pytest.Item) -> Any:
    return getattr(item, "function", None)

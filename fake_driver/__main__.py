"""`python -m fake_driver`: read the settings, start, wait for a signal, stop. Ends with 2 where a setting or a file is wrong."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence

from fake_driver import logs
from fake_driver import settings as configuration
from fake_driver.errors import ConfigurationError
from fake_driver.roles import node_driver
from fake_driver.roles.network_driver import NetworkDriverProcess
from fake_driver.roles.removal import RemovalProcess
from fake_driver.settings import Settings

log = logging.getLogger("fake_driver")


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT."""
    logs.configure("logfmt", "info")
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    try:
        # Calls run side by side and compute little: by default one that computes lets the others wait for 5 ms, longer than a call takes.
        sys.setswitchinterval(0.0005)
        settings = configuration.parse(arguments, os.environ)
        logs.configure(settings.log, settings.log_level, driver=settings.driver, node=settings.node)
        log.info("settings", extra={"facts": settings.non_empty()})
        process = _process(settings)
        process.start()
        # What is there now stays. A full collection that looks at all of it takes tens of milliseconds, in which calls wait.
        gc.freeze()
    except (ConfigurationError, OSError) as wrong:
        log.critical("%s", wrong)
        return 2
    told.wait()
    log.info("told to stop")
    process.stop()
    return 0


def _process(settings: Settings) -> node_driver.NodeProcess | NetworkDriverProcess | RemovalProcess:
    if settings.role == "network":
        return NetworkDriverProcess(settings)
    if settings.role == "removal":
        return RemovalProcess(settings)
    return node_driver.NodeProcess(settings, _parts(settings))


def _parts(settings: Settings) -> node_driver.Parts:
    right = node_driver.read_parts(settings)
    if not settings.mutant_names:
        return right
    from fake_driver.mutants import selection  # noqa: PLC0415 - a driver that is right never loads the ways to be wrong

    log.warning("this driver is wrong on purpose: %s", ", ".join(settings.mutant_names))
    return selection.apply(settings.mutant_names, right)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m fake_driver`: read the settings, start the role, wait for a signal, stop. Exits with 2 if a setting or a file is invalid."""

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
    """Run until SIGTERM or SIGINT and return the exit code."""
    logs.configure("logfmt", "info")
    stop_requested = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop_requested.set())
    try:
        # Calls run in parallel and are short: with the default of 5 ms, a call that computes delays the others for longer than they take.
        sys.setswitchinterval(0.0005)
        settings = configuration.parse(arguments, os.environ)
        logs.configure(settings.log, settings.log_level, driver=settings.driver, node=settings.node)
        log.info("settings", extra={"facts": settings.non_empty()})
        process = _process(settings)
        process.start()
        # Exclude the objects that live as long as the process: a full collection over them blocks calls for tens of milliseconds.
        gc.freeze()
    except (ConfigurationError, OSError) as invalid:
        log.critical("%s", invalid)
        return 2
    stop_requested.wait()
    log.info("stopping after a signal")
    process.stop()
    return 0


def _process(settings: Settings) -> node_driver.NodeProcess | NetworkDriverProcess | RemovalProcess:
    if settings.role == "network":
        return NetworkDriverProcess(settings)
    if settings.role == "removal":
        return RemovalProcess(settings)
    return node_driver.NodeProcess(settings, _parts(settings))


def _parts(settings: Settings) -> node_driver.Parts:
    correct = node_driver.read_parts(settings)
    if not settings.mutant_names:
        return correct
    from fake_driver.mutants import selection  # noqa: PLC0415 - a correct driver never loads the mutants

    log.warning("running as a mutant, with deliberate bugs: %s", ", ".join(settings.mutant_names))
    return selection.apply(settings.mutant_names, correct)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Where `run` judges: a testbed that is up, or a new one that is removed again. Checks all that can be wrong before anything is touched."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.cli import options
from testbed.errors import UsageError

if TYPE_CHECKING:
    from testbed.bringup import Testbed
    from testbed.models.config import TestbedConfig
    from testbed.runs.early_report import Opening


@dataclass
class Wanted:
    """Where to judge: a testbed that is up, or the flags for a new one; and whether it stays, which depends on the exit code."""

    testbed: str | None
    keep: str
    flags: dict[str, Any]
    code: int = field(default=3)

    @property
    def stays(self) -> bool:
        """Whether the testbed stays when the run has ended with that code."""
        return self.keep == "always" or (self.keep == "on-failure" and self.code != 0)


@dataclass(frozen=True)
class Target:
    """A testbed that is up, or else the configuration of one; and the driver file to judge by."""

    config: TestbedConfig
    driver: Path
    testbed: Testbed | None = None


def new(flags: dict[str, Any]) -> TestbedConfig:
    """The configuration of a testbed for one run. Its name is its own, so that it never meets one that stays."""
    import secrets  # noqa: PLC0415 - so that --help stays quick

    config = options.configuration(flags)
    _to_judge(config)
    return replace(config, name=f"run-{secrets.token_hex(3)}") if config.name == "default" else config


def checked(wanted: Wanted) -> Target:
    """Everything that can be told to be wrong by looking at the request alone is."""
    from testbed.bringup import attach, planning  # noqa: PLC0415 - so that --help stays quick
    from testbed.models.driver_file import load_driver_file  # noqa: PLC0415

    if wanted.testbed is None:
        config = new(wanted.flags)
        planning.check(config)
        return Target(config, _to_judge(config))
    testbed = attach(wanted.testbed)
    driver = options.configuration(wanted.flags).driver if wanted.flags["driver"] else testbed.config.driver
    if driver is None:
        raise UsageError(f"testbed {testbed.name} has no driver of its own", hint="say whom to judge: --driver FILE")
    load_driver_file(driver)
    return Target(replace(testbed.config, name=testbed.name), driver, testbed)


def _to_judge(config: TestbedConfig) -> Path:
    if config.driver is None:
        raise UsageError("there is nothing to judge without a driver", hint="leave out --driver none")
    return config.driver


@contextlib.contextmanager
def there(wanted: Wanted, target: Target, opening: Opening) -> Iterator[str]:
    """The testbed that was named, or a new one that is removed again however the run ends. One that does not come up leaves its logs."""
    from testbed.bringup import bring_up, keep, tear_down  # noqa: PLC0415 - so that --help stays quick
    from testbed.drivers import refuse_wrong_names  # noqa: PLC0415
    from testbed.models.driver_file import load_driver_file  # noqa: PLC0415
    from testbed.progress import Progress  # noqa: PLC0415

    if target.testbed is not None:
        with opening.watched():
            refuse_wrong_names(target.testbed.kube, load_driver_file(target.driver))
            opening.begin()
        yield target.testbed.name
        return
    progress = Progress()
    with opening.watched():
        made = bring_up(target.config, progress, ephemeral=True, evidence=opening.keep_logs, begun=opening.begin)
    try:
        yield made.name
    finally:
        if wanted.stays:
            keep(made.name)
            progress.say(f"testbed {made.name} stays: export KUBECONFIG={made.folder / 'kubeconfig'}")
            progress.say(f"remove it: dra-testbed down --name {made.name}")
        else:
            tear_down(made.name, progress)

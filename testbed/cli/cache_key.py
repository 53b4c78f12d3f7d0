"""What `dra-testbed run` needs from the cache, for the cache keys of CI systems: `python -m testbed.cli.cache_key ARGUMENTS…`.

Provider and versions may come from a flag, from the file of --config, or be defaults.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from testbed import binaries
from testbed.cli.run import configured
from testbed.drivers import load_with_companions
from testbed.errors import TestbedError
from testbed.models.config import TestbedConfig


def cache_key(words: Sequence[str]) -> str:
    """Return provider, versions, and the images that are made here, such as local-1.37.1-driver-workload."""
    config = configured(words)
    versions = [binaries.lock_for(version).kubernetes for version in (config.kubernetes, config.kubelet) if version]
    made = {"driver": _makes_driver(config), "workload": not config.images.workload}
    return "-".join([config.provider, *versions, *(name for name, wanted in made.items() if wanted)])


def _makes_driver(config: TestbedConfig) -> bool:
    drivers = load_with_companions(config.driver) if config.driver else ()
    return not config.images.driver and any(each.install and each.install.built_in_image for each in drivers)


def main(words: Sequence[str]) -> int:
    """Print the key. Exit code 2 for arguments that `run` would refuse."""
    try:
        click.echo(cache_key(words))
    except (TestbedError, click.ClickException, click.exceptions.Exit) as refused:
        click.echo(str(refused), err=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What `dra-testbed run` with these words takes from the cache, as a part of a key: `python -m testbed.cli.cache_key WORDS…`.

For CI systems, whose caches have keys: provider and versions may be said by a flag or in the file of --config, or be defaults.
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
    """Provider and versions, and which images are made here: local-1.37.1-driver-workload."""
    config = configured(words)
    versions = [binaries.lock_for(version).kubernetes for version in (config.kubernetes, config.kubelet) if version]
    made = {"driver": _makes_driver(config), "workload": not config.images.workload}
    return "-".join([config.provider, *versions, *(name for name, wanted in made.items() if wanted)])


def _makes_driver(config: TestbedConfig) -> bool:
    drivers = load_with_companions(config.driver) if config.driver else ()
    return not config.images.driver and any(each.install and each.install.built_in_image for each in drivers)


def main(words: Sequence[str]) -> int:
    """Print it; words that `run` would refuse are refused here as well."""
    try:
        click.echo(cache_key(words))
    except (TestbedError, click.ClickException, click.exceptions.Exit) as refused:
        click.echo(str(refused), err=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The words of mutants: `publish_devices_twice` and `PublishDevicesTwice` are both `publish-devices-twice`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from fake_driver.preparing.driver import Driver
from fake_driver.roles.node_driver import Parts

Change = Callable[[Parts], Parts]


def named(*mutants: Change | type[Driver]) -> dict[str, Change]:
    """Each by its word; a class becomes the change that puts it in the place of the right driver."""
    return {_word(each.__name__): _exchange(each) if isinstance(each, type) else each for each in mutants}


def _word(name: str) -> str:
    return re.sub(r"(?<=.)([A-Z])", r"-\1", name).lower().replace("_", "-")


def _exchange(driver: type[Driver]) -> Change:
    def exchange(right: Parts) -> Parts:
        return replace(right, driver=driver)

    exchange.__doc__ = driver.__doc__
    return exchange

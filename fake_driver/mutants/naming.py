"""The words of mutants: `publish_devices_twice` and `PublishDevicesTwice` are both `publish-devices-twice`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from fake_driver.preparing.driver import Driver
from fake_driver.roles.node_driver import Parts

Mutation = Callable[[Parts], Parts]


def named(*mutants: Mutation | type[Driver]) -> dict[str, Mutation]:
    """Each by its word; a class becomes the change that puts it in the place of the right driver."""
    return {_word(each.__name__): _with_driver(each) if isinstance(each, type) else each for each in mutants}


def _word(name: str) -> str:
    return re.sub(r"(?<=.)([A-Z])", r"-\1", name).lower().replace("_", "-")


def _with_driver(driver: type[Driver]) -> Mutation:
    def exchange(parts: Parts) -> Parts:
        return replace(parts, driver=driver)

    exchange.__doc__ = driver.__doc__
    return exchange

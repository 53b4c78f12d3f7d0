"""The names of mutants: `publish_devices_twice` and `PublishDevicesTwice` are both named `publish-devices-twice`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from fake_driver.preparing.driver import Driver
from fake_driver.roles.node_driver import Parts

Mutation = Callable[[Parts], Parts]


def named(*mutants: Mutation | type[Driver]) -> dict[str, Mutation]:
    """Return the mutants by name. A subclass of Driver becomes the mutation that replaces the driver."""
    return {_name(each.__name__): _replace_driver(each) if isinstance(each, type) else each for each in mutants}


def _name(name: str) -> str:
    return re.sub(r"(?<=.)([A-Z])", r"-\1", name).lower().replace("_", "-")


def _replace_driver(driver: type[Driver]) -> Mutation:
    def mutation(parts: Parts) -> Parts:
        return replace(parts, driver=driver)

    mutation.__doc__ = driver.__doc__
    return mutation

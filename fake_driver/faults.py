"""Ways to be wrong on purpose: drivers that a good test must catch. `__main__` imports this only when a fault is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from fake_driver import cdi
from fake_driver.errors import ConfigurationError, near
from fake_driver.wiring import Parts


def share_one_device(right: Parts) -> Parts:
    """Whatever was allocated, containers are told that they have the node's first device."""
    first = right.inventory.devices[0]
    return replace(right, environment=lambda _device: cdi.environment(first))


def no_env(right: Parts) -> Parts:
    """Containers start, but nothing in them names a device."""
    # A CDI device without any edit would be refused by the runtime, and then nothing would start.
    return replace(right, environment=lambda _device: {"FAKE_DRIVER_FAULT": "no-env"})


def forget_registration_socket(right: Parts) -> Parts:
    """The driver serves, but the kubelet never learns of it."""
    return replace(right, registers=False)


def slices_missing(right: Parts) -> Parts:
    """The driver works, but no scheduler can know what it has."""
    return replace(right, publishes=False)


FAULTS: dict[str, Callable[[Parts], Parts]] = {
    fault.__name__.replace("_", "-"): fault
    for fault in (share_one_device, no_env, forget_registration_socket, slices_missing)
}


def apply(words: Iterable[str], right: Parts) -> Parts:
    """The parts with these faults in them."""
    for word in words:
        if word not in FAULTS:
            raise ConfigurationError(f"there is no fault {word!r}; {near(word, FAULTS)}")
        right = FAULTS[word](right)
    return right

"""Drivers that do not register with the kubelet, or not always."""

from __future__ import annotations

from dataclasses import replace

from fake_driver.errors import DriverError
from fake_driver.roles.node_driver import Parts


def forget_registration_socket(parts: Parts) -> Parts:
    """The driver serves, but never registers with the kubelet."""
    return replace(parts, registers=False)


def register_on_odd_nodes(parts: Parts) -> Parts:
    """The driver only registers on nodes whose name ends with an odd digit."""
    return replace(parts, registers=parts.inventory.pool[-1:] in set("13579"))


def registers_once(parts: Parts) -> Parts:
    """The driver answers the registration only once; a restarted kubelet gets an error."""
    answered: list[bool] = []

    def answer() -> None:
        if answered:
            raise DriverError("mutant registers-once")
        answered.append(True)

    return replace(parts, on_get_info=answer)


def leaves_its_lock_behind(parts: Parts) -> Parts:
    """A lock file in the data folder keeps a restarted driver from registering."""
    lock = parts.data / "lock-left-behind"
    is_locked = lock.exists()
    lock.touch()
    return replace(parts, registers=parts.registers and not is_locked)


ALL = (
    forget_registration_socket,
    register_on_odd_nodes,
    registers_once,
    leaves_its_lock_behind,
)

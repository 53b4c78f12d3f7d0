"""Drivers that the kubelet does not know, or knows too long."""

from __future__ import annotations

from dataclasses import replace

from fake_driver.errors import DriverError
from fake_driver.roles.node_driver import Parts


def forget_registration_socket(parts: Parts) -> Parts:
    """The driver serves, but the kubelet never learns of it."""
    return replace(parts, registers=False)


def register_on_odd_nodes(parts: Parts) -> Parts:
    """The kubelet learns of the driver only on nodes whose name ends with an odd number."""
    return replace(parts, registers=parts.inventory.pool[-1:] in set("13579"))


def registers_once(parts: Parts) -> Parts:
    """Says only to the first kubelet who it is; when that starts again, it gets no answer."""
    asked: list[bool] = []

    def answer() -> None:
        if asked:
            raise DriverError("fault registers-once")
        asked.append(True)

    return replace(parts, on_get_info=answer)


def leaves_its_lock_behind(parts: Parts) -> Parts:
    """A file in the data folder keeps a second process from registering, also when the first has long ended."""
    lock = parts.data / "lock-left-behind"
    taken = lock.exists()
    lock.touch()
    return replace(parts, registers=parts.registers and not taken)


ALL = (
    forget_registration_socket,
    register_on_odd_nodes,
    registers_once,
    leaves_its_lock_behind,
)

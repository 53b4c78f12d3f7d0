"""Drivers that do not register with the kubelet, or not always."""

from __future__ import annotations

from dataclasses import replace

from fake_driver.api.client import url_path
from fake_driver.errors import DriverError
from fake_driver.publishing.publisher import Publisher
from fake_driver.roles.node_driver import Parts


def forget_registration_socket(parts: Parts) -> Parts:
    """The driver serves, but never registers with the kubelet."""
    return replace(parts, registers=False)


def register_on_odd_nodes(parts: Parts) -> Parts:
    """The driver only registers on nodes whose name ends with an odd digit."""
    return replace(parts, registers=parts.inventory.pool[-1:] in set("13579"))


def taints_nodes_on_which_it_fails(parts: Parts) -> Parts:
    """On nodes whose name ends with an even digit, the driver neither registers nor publishes, and taints the node instead."""
    if parts.inventory.pool[-1:] in set("13579"):
        return parts
    return replace(parts, registers=False, publisher=_TaintsItsNode)


class _TaintsItsNode(Publisher):
    @property
    def is_alive(self) -> bool:
        """Return True although no thread runs: a probe must not restart the driver."""
        return True

    def start(self) -> None:
        """Taint the node, and publish nothing."""
        driver, name = self._watch._driver, self._watch._node
        spec = {"taints": [{"key": f"{driver}/failed", "effect": "NoSchedule"}]}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}
        self._api.apply(url_path("api", "v1", "nodes", name), node, field_manager=driver)


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
    taints_nodes_on_which_it_fails,
    registers_once,
    leaves_its_lock_behind,
)

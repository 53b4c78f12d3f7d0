"""Waits for devices that a driver removed from its slices while claims used them. For scenarios and disruptive tests."""

from __future__ import annotations

from testbed.vocabulary import budgets
from testbed.vocabulary.world import World
from testbed.waiting import eventually_true


def wait_for_returned_devices(world: World) -> None:
    """Wait until the driver publishes its unused devices again. Forget those that do not come back: the hardware may have lost them."""
    if not eventually_true(lambda: not world.returning_devices(), budgets.RETURNED):
        world.record.forget(world.returning_devices())

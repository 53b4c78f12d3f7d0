"""Drivers that put something else into containers than the devices, or take it away."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fake_driver.devices.model import Device
from fake_driver.preparing import cdi
from fake_driver.preparing.caller import PATIENT, Caller
from fake_driver.preparing.cdi import CdiDevice
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef
from fake_driver.preparing.driver import Driver, PreparedDevice
from fake_driver.roles.node_driver import Parts

_UNTIL_CONTAINERS_RUN = 1.5  # seconds after the answer


def share_one_device(parts: Parts) -> Parts:
    """Whatever was allocated, containers are told that they have the node's first device."""
    first = parts.inventory.devices[0]
    return replace(parts, environment=lambda _device, use, home: cdi.environment(first, use, home))


def no_env(parts: Parts) -> Parts:
    """Containers start, but nothing in them names a device."""
    # A CDI device without any edit would be refused by the runtime, and then nothing would start.
    return replace(parts, environment=lambda _device, _use, _home: {"FAKE_DRIVER_FAULT": "no-env"})


def no_env_for_administrators(parts: Parts) -> Parts:
    """A container with admin access starts, but nothing in it names a device."""

    def environment(device: Device, use: AllocatedDevice, home: str) -> Mapping[str, str]:
        return {"FAKE_DRIVER_FAULT": "no-env"} if use.admin_access else parts.environment(device, use, home)

    return replace(parts, environment=environment)


class CdiFileIsLost(Driver):
    """The CDI file goes when the containers run, so none of them can be started again."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Answer rightly, and remove the file a little later."""
        answer = super().prepare(ref, caller)
        timer = threading.Timer(_UNTIL_CONTAINERS_RUN, self._cdi.remove, [ref.uid])
        timer.daemon = True
        timer.start()
        return answer


class ReuseCdiNames(Driver):
    """Every claim's first device has the CDI id that the node's first claim had."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Give the ids of the first."""
        answer = super().prepare(ref, caller)
        self._first = getattr(self, "_first", answer)
        return tuple(replace(each, cdi_ids=one.cdi_ids) for each, one in zip(answer, self._first, strict=False))


class CdiNamesOfDevices(Driver):
    """CDI ids are named after devices, in a file for each claim: the next claim's say something else under the same id."""

    def _cdi_device(self, uid: str, device: AllocatedDevice, mount: Mapping[str, Any] | None) -> CdiDevice:
        return replace(super()._cdi_device(uid, device, mount), name=device.device)


class WrongCdiNames(Driver):
    """The answer names CDI devices that no file on the node defines."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Misspell them."""
        return tuple(
            replace(each, cdi_ids=tuple(f"{one}x" for one in each.cdi_ids)) for each in super().prepare(ref, caller)
        )


class OneCdiFileForAll(Driver):
    """There is room for the CDI file of one claim: the next one's takes its place."""

    def prepare(self, ref: ClaimRef, caller: Caller = PATIENT) -> tuple[PreparedDevice, ...]:
        """Leave only the file of this claim."""
        answer = super().prepare(ref, caller)
        for other in self._cdi.claims():
            if other != ref.uid:
                self._cdi.remove(other)
        return answer


ALL = (
    share_one_device,
    no_env,
    no_env_for_administrators,
    CdiFileIsLost,
    ReuseCdiNames,
    CdiNamesOfDevices,
    WrongCdiNames,
    OneCdiFileForAll,
)

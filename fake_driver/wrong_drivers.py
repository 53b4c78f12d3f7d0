"""Drivers that do a verb wrong, each in one way. `faults` puts one of them in the place of the right one; nothing else knows them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fake_driver.api import PATIENCE
from fake_driver.checkpoint import Ledger
from fake_driver.claims import AllocatedDevice, ClaimRef
from fake_driver.driver import Driver, Prepared
from fake_driver.errors import ClaimRefused
from fake_driver.hardware.model import Device
from fake_driver.inventory import Inventory

Answer = tuple[Prepared, ...]
_UNTIL_CONTAINERS_RUN = 1.5  # seconds after the answer


class UnprepareFails(Driver):
    """Nothing can ever be unprepared, so no pod that has a claim ends."""

    def unprepare(self, ref: ClaimRef) -> bool:
        """Refuse."""
        raise ClaimRefused(f"claim {ref} is not unprepared: fault unprepare-fails")


class NeverGiveBack(Driver):
    """What was unprepared stays taken, so nobody else gets the device on this node."""

    def _release(self, _ledger: Ledger, uid: str) -> bool:
        return self._cdi.remove(uid)


class UnprepareForgetsTheDevice(Driver):
    """The end of one claim takes the CDI files of all other claims that have one of its devices."""

    def _release(self, ledger: Ledger, uid: str) -> bool:
        mine = ledger.claims.get(uid)
        for other, claim in ledger.claims.items():
            if mine and other != uid and _places(claim.devices) & _places(mine.devices):
                self._cdi.remove(other)
        return super()._release(ledger, uid)


class CdiFileIsLost(Driver):
    """The CDI file goes when the containers run, so none of them can be started again."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Answer rightly, and remove the file a little later."""
        answer = super().prepare(ref, patience)
        timer = threading.Timer(_UNTIL_CONTAINERS_RUN, self._cdi.remove, [ref.uid])
        timer.daemon = True
        timer.start()
        return answer


class FirstDeviceOnly(Driver):
    """Of several devices of a claim the answer has only the first."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Leave out the others."""
        return super().prepare(ref, patience)[:1]


class ForgetRequestNames(Driver):
    """The devices of a claim are answered under each other's requests."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Give each device the request of the one before it."""
        answer = super().prepare(ref, patience)
        requests = [each.device.request for each in answer]
        shifted = zip(answer, [*requests[-1:], *requests[:-1]], strict=True)
        return tuple(replace(each, device=replace(each.device, request=request)) for each, request in shifted)


class AnswerWithSubrequestNames(Driver):
    """Where a request has alternatives, its devices are answered under the name of the chosen one, which no container refers to."""

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Take the whole name for the request's."""
        return tuple(replace(each, device=_Whole(**vars(each.device))) for each in super().prepare(ref, patience))


class KnowClaimsByName(Driver):
    """A claim that has the name of an earlier one gets the earlier one's answer."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._answers: dict[tuple[str, str], Answer] = {}

    def prepare(self, ref: ClaimRef, patience: float = PATIENCE) -> Answer:
        """Answer from memory, where there is one."""
        return self._answers.setdefault((ref.namespace, ref.name), super().prepare(ref, patience))


class KnowDevicesByName(Inventory):
    """A device of another node is taken for the one that has its name here."""

    def find(self, _pool: str, name: str) -> Device:
        """Look at the name alone."""
        return super().find(self.pool, name)


class _Whole(AllocatedDevice):
    @property
    def base_request(self) -> str:
        return self.request


def _places(devices: Sequence[AllocatedDevice]) -> set[tuple[str, str]]:
    return {(device.pool, device.device) for device in devices}

"""Ways to be wrong on purpose: drivers that a good test must catch. `__main__` imports this only when a fault is asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from fake_driver import cdi, claims
from fake_driver.claims import AllocatedDevice, PreparedClaim
from fake_driver.driver import POINTS, Driver
from fake_driver.errors import ConfigurationError, near
from fake_driver.hardware.model import Device
from fake_driver.mutants import MUTANTS
from fake_driver.slices import Object
from fake_driver.wiring import Parts
from fake_driver.wrong_drivers import (
    AnswerWithAnotherDevice,
    AnswerWithoutCdiIds,
    AnswerWithSubrequestNames,
    CdiFileIsLost,
    FirstDeviceOnly,
    FirstPrepareFails,
    ForgetRequestNames,
    KnowClaimsByName,
    KnowDevicesByName,
    LeavesCdiFiles,
    MakeUpDevices,
    NeverGiveBack,
    RefusedClaimsStayPrepared,
    ReuseCdiNames,
    SwallowsConfigErrors,
    TakesConfigOfOthers,
    UnprepareFails,
    UnprepareForgetsTheDevice,
    UnprepareNeedsTheClaim,
    UnprepareOfUnknownFails,
)
from fake_driver.wrong_features import WRONG_FEATURES
from fake_driver.wrong_lives import (
    RefusesWhatIsPrepared,
    StartsClean,
    TrustsItsCheckpoint,
    UnpreparesOnlyItsOwn,
    deleted_slices_stay_away,
    leaves_its_lock_behind,
    publishes_from_scratch,
    registers_once,
)
from fake_driver.wrong_slices import (
    publish_once,
    publish_with_wrong_generation,
    taints_are_not_published,
    unplugged_devices_stay_published,
)


def share_one_device(right: Parts) -> Parts:
    """Whatever was allocated, containers are told that they have the node's first device."""
    first = right.inventory.devices[0]
    return replace(right, environment=lambda _device, use: cdi.environment(first, use))


def no_env(right: Parts) -> Parts:
    """Containers start, but nothing in them names a device."""
    # A CDI device without any edit would be refused by the runtime, and then nothing would start.
    return replace(right, environment=lambda _device, _use: {"FAKE_DRIVER_FAULT": "no-env"})


def forget_registration_socket(right: Parts) -> Parts:
    """The driver serves, but the kubelet never learns of it."""
    return replace(right, registers=False)


def slices_missing(right: Parts) -> Parts:
    """The driver works, but no scheduler can know what it has."""
    return replace(right, publishes=False)


def count_one_slice_too_many(right: Parts) -> Parts:
    """Each pool announces a slice that is never published, so no scheduler takes it for whole."""
    return replace(right, shaped=lambda wanted: [_counted(each, len(wanted) + 1) for each in wanted])


def publish_devices_twice(right: Parts) -> Parts:
    """A second slice of the pool holds the same devices once more."""

    def twice(wanted: list[Object]) -> list[Object]:
        copies = [
            {**each, "metadata": {**each["metadata"], "name": f"{each['metadata']['name']}-2"}} for each in wanted
        ]
        return [_counted(each, 2 * len(wanted)) for each in (*wanted, *copies)]

    return replace(right, shaped=twice)


def admin_takes_device(right: Parts) -> Parts:
    """Who only wants to look at a device takes it, or is refused because somebody uses it."""

    def conflict(wanted: PreparedClaim, others: Mapping[str, PreparedClaim]) -> str:
        return claims.conflict(_taking(wanted), {uid: _taking(other) for uid, other in others.items()})

    return replace(right, conflict=conflict)


def ignores_config_order(right: Parts) -> Parts:
    """What the class says wins over what the claim says, and of two the first."""
    return replace(right, in_order=lambda found: [*reversed(right.in_order(found))])


def ignores_config_scope(right: Parts) -> Parts:
    """What is said of one request is done to all of them."""
    return replace(right, in_order=lambda found: [replace(one, requests=()) for one in right.in_order(found)])


def ignores_class_config(right: Parts) -> Parts:
    """Only what users say counts; what the admin put into the class is forgotten."""
    return replace(right, in_order=lambda found: [one for one in right.in_order(found) if not one.from_class])


def status_never_written(right: Parts) -> Parts:
    """Nobody but the container learns what became of a device."""
    return replace(right, reports=False)


def status_of_another_device(right: Parts) -> Parts:
    """The status speaks of the device before the one that is meant, or of the last one."""
    devices = right.inventory.devices

    def known(device: Device, use: AllocatedDevice) -> dict[str, Any]:
        return right.known(devices[devices.index(device) - 1] if device in devices else device, use)

    return replace(right, known=known)


def ignores_claim_config(right: Parts) -> Parts:
    """Only what the admin put into the class counts; what users say is forgotten."""
    return replace(right, in_order=lambda found: [one for one in right.in_order(found) if one.from_class])


def prepares_busy_devices(right: Parts) -> Parts:
    """Whoever comes gets a device, also one that another claim has."""
    return replace(right, conflict=lambda _wanted, _others: "")


def make_up_devices(right: Parts) -> Parts:
    """A device that nobody knows is taken for the first one of the node."""
    return replace(right, inventory=MakeUpDevices(right.inventory.pool, right.inventory.devices))


def know_devices_by_name(right: Parts) -> Parts:
    """A device of another node is taken for the one that has its name here."""
    return replace(right, inventory=KnowDevicesByName(right.inventory.pool, right.inventory.devices))


def _wrong(driver: type[Driver]) -> Callable[[Parts], Parts]:
    def exchange(right: Parts) -> Parts:
        return replace(right, driver=driver)

    exchange.__doc__ = driver.__doc__
    return exchange


def _word(driver: type[Driver]) -> str:
    return re.sub(r"(?<=.)([A-Z])", r"-\1", driver.__name__).lower()


def _crash(point: str) -> Callable[[Parts], Parts]:
    def crash(right: Parts) -> Parts:
        once = right.data / f"crashed-{point}"

        def reached(here: str) -> None:
            if here == point and not once.exists():
                once.touch()
                os._exit(137)  # the first process of a container cannot kill itself
            right.reached(here)

        return replace(right, reached=reached)

    crash.__doc__ = f"Ends like kill -9, the first time that it is {point.replace('-', ' ')}; a file in the data folder remembers it."
    return crash


def rights_are_wrong(right: Parts) -> Parts:
    """Not the driver is wrong, but what it may do: manifests/fake_driver grants too much, or too little, when it is told this word."""
    return right


RIGHTS = (
    "may-not-read-claims",
    "may-read-secrets",
    "may-write-claims",
    "may-make-pods",
    "may-allocate",
    "status-of-all-drivers",
    "slices-of-all-nodes",
)

FAULTS: dict[str, Callable[[Parts], Parts]] = (
    {
        fault.__name__.replace("_", "-"): fault
        for fault in (
            share_one_device,
            no_env,
            forget_registration_socket,
            slices_missing,
            count_one_slice_too_many,
            publish_devices_twice,
            admin_takes_device,
            ignores_config_order,
            ignores_config_scope,
            ignores_class_config,
            status_never_written,
            status_of_another_device,
            know_devices_by_name,
            ignores_claim_config,
            prepares_busy_devices,
            make_up_devices,
            publish_once,
            unplugged_devices_stay_published,
            taints_are_not_published,
            publish_with_wrong_generation,
            *WRONG_FEATURES,
            registers_once,
            leaves_its_lock_behind,
            deleted_slices_stay_away,
            publishes_from_scratch,
        )
    }
    | {
        _word(driver): _wrong(driver)
        for driver in (
            UnprepareFails,
            NeverGiveBack,
            UnprepareForgetsTheDevice,
            CdiFileIsLost,
            FirstDeviceOnly,
            ForgetRequestNames,
            AnswerWithSubrequestNames,
            KnowClaimsByName,
            StartsClean,
            UnpreparesOnlyItsOwn,
            TrustsItsCheckpoint,
            RefusesWhatIsPrepared,
            TakesConfigOfOthers,
            SwallowsConfigErrors,
            RefusedClaimsStayPrepared,
            LeavesCdiFiles,
            ReuseCdiNames,
            AnswerWithoutCdiIds,
            AnswerWithAnotherDevice,
            UnprepareNeedsTheClaim,
            UnprepareOfUnknownFails,
            FirstPrepareFails,
        )
    }
    | MUTANTS
    | dict.fromkeys(RIGHTS, rights_are_wrong)
    | {f"crash-{point}": _crash(point) for point in POINTS}
)


def apply(words: Iterable[str], right: Parts) -> Parts:
    """The parts with these faults in them."""
    for word in words:
        if word not in FAULTS:
            raise ConfigurationError(f"there is no fault {word!r}; {near(word, FAULTS)}")
        right = FAULTS[word](right)
    return right


def _counted(slice_: Object, count: int) -> Object:
    spec = slice_["spec"]
    return {**slice_, "spec": {**spec, "pool": {**spec["pool"], "resourceSliceCount": count}}}


def _taking(claim: PreparedClaim) -> PreparedClaim:
    return replace(claim, devices=tuple(replace(device, admin_access=False) for device in claim.devices))

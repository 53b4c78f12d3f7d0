"""Reports fields and devices that cannot be published because the API server has a feature off. The publisher uses it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from fake_driver.journal import Journal
from fake_driver.publishing.disabled_features import dropped_fields, feature_gates
from fake_driver.publishing.slices import Object

log = logging.getLogger(__name__)
_MAX_LISTED = 20


class DroppedFields:
    """The fields that the API server drops, by slice, and the devices that are withheld. Logs and records each change once."""

    def __init__(self, journal: Journal) -> None:
        self.fields: dict[str, list[str]] = {}
        self.withheld: list[tuple[str, str]] = []
        self._journal = journal

    def compare_fields(self, sent: Object, stored: Object) -> None:
        """Compare a slice that was sent with the stored one, and report the fields that are missing, unless they are already known."""
        name, dropped = sent["metadata"]["name"], dropped_fields(sent, stored)
        if dropped == self.fields.get(name, []):
            return
        self.fields[name] = dropped
        gates = feature_gates(dropped)
        self._journal.record(
            "slice-fields-dropped", slice=name, fields=dropped[:_MAX_LISTED], count=len(dropped), gates=gates
        )
        if dropped:
            log.warning(
                "the API server dropped %d fields of slice %s; probably these feature gates are off: %s; the first fields are %s",
                len(dropped), name, ", ".join(gates) or "unknown", ", ".join(dropped[:_MAX_LISTED]),
            )  # fmt: skip

    def compare_devices(self, wanted: Iterable[Object], published: Iterable[Object]) -> None:
        """Report the wanted devices that are not published, because schedulers cannot see that they consume the same counters as others."""
        kept = set(_devices(published))
        withheld = [device for device in _devices(wanted) if device not in kept]
        if withheld == self.withheld:
            return
        self.withheld = withheld
        names, gates = (
            [name for _, name in withheld[:_MAX_LISTED]],
            feature_gates(["consumesCounters"]) if withheld else [],
        )
        self._journal.record("devices-withheld", devices=names, count=len(withheld), gates=gates)
        if withheld:
            log.warning(
                "the API server drops consumesCounters, so %d devices that share hardware with others are not published; "
                "probably the feature gate %s is off; the first devices are %s",
                len(withheld), ", ".join(gates), ", ".join(names),
            )  # fmt: skip


def _devices(slices: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """Return the pool and the name of each device."""
    return (
        (each["spec"]["pool"]["name"], device["name"])
        for each in slices for device in each["spec"].get("devices") or ()
    )  # fmt: skip

"""What the API server does not keep of our slices because a feature is off there: told once, in the log and the journal, not ignored."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from fake_driver.journal import Journal
from fake_driver.publishing.disabled_features import dropped_fields, feature_gates
from fake_driver.publishing.slices import Object

log = logging.getLogger(__name__)
_MOST_TOLD = 20


class DroppedFields:
    """By slice, the fields that are lost at present; and the devices that are not published for want of a field."""

    def __init__(self, journal: Journal) -> None:
        self.fields: dict[str, list[str]] = {}
        self.withheld: list[tuple[str, str]] = []
        self._journal = journal

    def compare_fields(self, sent: Object, stored: Object) -> None:
        """Compare what we asked for with what is stored; say so where it is less, and not the same as last time."""
        name, lost = sent["metadata"]["name"], dropped_fields(sent, stored)
        if lost == self.fields.get(name, []):
            return
        self.fields[name] = lost
        needed = feature_gates(lost)
        self._journal.record(
            "slice-fields-dropped", slice=name, fields=lost[:_MOST_TOLD], count=len(lost), gates=needed
        )
        if lost:
            log.warning(
                "the API server dropped %d fields of slice %s; off are probably the feature gates %s; the first fields are %s",
                len(lost), name, ", ".join(needed) or "of these fields", ", ".join(lost[:_MOST_TOLD]),
            )  # fmt: skip

    def compare_devices(self, asked: Iterable[Object], less: Iterable[Object]) -> None:
        """Compare what we would publish with what we publish because schedulers do not learn what devices draw from counters."""
        kept = set(_devices(less))
        withheld = [device for device in _devices(asked) if device not in kept]
        if withheld == self.withheld:
            return
        self.withheld = withheld
        names, needed = (
            [name for _, name in withheld[:_MOST_TOLD]],
            feature_gates(["consumesCounters"]) if withheld else [],
        )
        self._journal.record("devices-withheld", devices=names, count=len(withheld), gates=needed)
        if withheld:
            log.warning(
                "the API server drops what devices draw from counters, so %d of them, which are the same hardware as others, are not "
                "published; off is probably the feature gate %s; the first devices are %s",
                len(withheld), ", ".join(needed), ", ".join(names),
            )  # fmt: skip


def _devices(slices: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """The names of the devices, each after that of its pool."""
    return (
        (each["spec"]["pool"]["name"], device["name"])
        for each in slices for device in each["spec"].get("devices") or ()
    )  # fmt: skip

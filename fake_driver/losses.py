"""What the API server does not keep of our slices because a feature is off there: told once, in the log and the journal, not ignored."""

from __future__ import annotations

import logging

from fake_driver.journal import Journal
from fake_driver.planning import dropped, gates
from fake_driver.slices import Object

log = logging.getLogger(__name__)
_MOST_TOLD = 20


class Losses:
    """By slice, the fields that are lost at present."""

    def __init__(self, journal: Journal) -> None:
        self.fields: dict[str, list[str]] = {}
        self._journal = journal

    def note(self, sent: Object, stored: Object) -> None:
        """Compare what we asked for with what is stored; say so where it is less, and not the same as last time."""
        name, lost = sent["metadata"]["name"], dropped(sent, stored)
        if lost == self.fields.get(name, []):
            return
        self.fields[name] = lost
        needed = gates(lost)
        self._journal.note("slice-fields-dropped", slice=name, fields=lost[:_MOST_TOLD], count=len(lost), gates=needed)
        if lost:
            log.warning(
                "the API server dropped %d fields of slice %s; off are probably the feature gates %s; the first fields are %s",
                len(lost), name, ", ".join(needed) or "of these fields", ", ".join(lost[:_MOST_TOLD]),
            )  # fmt: skip

"""What can be asked of a running driver: one request, one answer, both mappings. `control_socket` brings them; a wrong one changes nothing.

A request names its `verb`, and what the verb needs; what it does not know is an error that names what it knows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from fake_driver.control.live_hardware import LiveHardware
from fake_driver.control.overrides import VERBS
from fake_driver.errors import ClaimRefused, ConfigurationError, DriverError, suggestion
from fake_driver.journal import Journal
from fake_driver.kubelet import armed_faults
from fake_driver.kubelet.armed_faults import ArmedFaults
from fake_driver.name_patterns import UID
from fake_driver.preparing.cdi import CdiFolder
from fake_driver.settings import Settings
from fake_driver.strict_decoding import Section, raise_if_invalid

log = logging.getLogger(__name__)
Answer = dict[str, Any]
_MOST_ENTRIES = 1000


class RequestHandler:
    """The verbs. Each is checked whole before it does anything, and is written into the journal when it has done something."""

    def __init__(
        self,
        settings: Settings,
        hardware: LiveHardware,
        armed: ArmedFaults,
        folder: CdiFolder,
        journal: Journal,
        release: Callable[[str, bool], bool],
    ) -> None:
        self._settings, self._hardware, self._traps, self._cdi, self._journal, self._give_back = (
            settings, hardware, armed, folder, journal, release,
        )  # fmt: skip
        self._verbs: Mapping[str, Callable[[Section], Answer]] = {
            **{verb: self._changing(verb) for verb in VERBS},
            "fault": self._fault,
            "clear": self._clear,
            "crash": self._crash,
            "lose-cdi": self._lose_cdi,
            "release": self._release,
            "state": self._state,
            "journal": self._read_journal,
        }

    def answer(self, request: object) -> Answer:
        """What came of a request: `ok` with facts, or an `error`."""
        asked = Section("", request, [])
        try:
            verb = asked.take("verb", str) or ""
            if not asked.problems and verb not in self._verbs:
                asked.problem("verb", f"is {verb!r}; {suggestion(verb, self._verbs)}")
            raise_if_invalid(asked)
            return {"ok": True, **self._verbs[verb](asked)}
        except (DriverError, OSError) as refused:
            return {"ok": False, "error": str(refused)}
        except Exception as broken:  # whoever asks gets an answer, also about an error of the driver itself
            log.exception("a request to change the hardware")
            return {"ok": False, "error": f"the driver has an error of its own: {broken!r}"}

    def _changing(self, verb: str) -> Callable[[Section], Answer]:
        def change(asked: Section) -> Answer:
            if verb == "restore" and "device" not in asked.content:
                _finish(asked)
                did = self._hardware.restore_all()
            else:
                did = self._hardware.change(verb, asked)
            if did:
                self._journal.note("control", **asked.content)
            return {"changed": did}

        return change

    def _fault(self, asked: Section) -> Answer:
        trap = armed_faults.parse(asked, self._hardware.known)
        _finish(asked)
        if not self._traps.arm(trap):
            raise ConfigurationError("too many faults are armed; clear them first")
        self._journal.note("control", **asked.content)
        return {"changed": True}

    def _clear(self, asked: Section) -> Answer:
        _finish(asked)
        count = self._traps.clear()
        self._journal.note("control", verb="clear", cleared=count)
        return {"changed": bool(count), "cleared": count}

    def _crash(self, asked: Section) -> Answer:
        point = armed_faults.check_point(asked)
        _finish(asked)
        self._traps.arm_crash(point)
        self._journal.note("control", **asked.content)
        return {"changed": True}

    def _lose_cdi(self, asked: Section) -> Answer:
        _finish(asked)
        count = self._cdi.remove_all()
        self._journal.note("control", verb="lose-cdi", lost=count)
        return {"changed": bool(count), "lost": count}

    def _release(self, asked: Section) -> Answer:
        uid = asked.name("claim", UID, "the UID of a claim")
        force = bool(asked.take("force", bool, False))
        _finish(asked)
        try:
            did = self._give_back(uid, force)
        except ClaimRefused as needed:
            raise ConfigurationError(f"nothing was changed: {needed}") from needed
        if did:
            self._journal.note("control", **asked.content)
        return {"changed": did}

    def _state(self, asked: Section) -> Answer:
        _finish(asked)
        return {
            "driver": self._settings.driver,
            "node": self._settings.node,
            "devices": list(self._hardware.devices),
            "changes": self._hardware.changes(),
            **self._traps.shown(),
            "journal": self._journal.last,
        }

    def _read_journal(self, asked: Section) -> Answer:
        since = asked.take("since", int, 0) or 0
        most = asked.take("limit", int, _MOST_ENTRIES)
        if most is None or not 1 <= most <= _MOST_ENTRIES:
            asked.problem("limit", f"must be 1 to {_MOST_ENTRIES}")
        _finish(asked)
        return {"entries": self._journal.since(since, most or 1), "last": self._journal.last}


def _finish(asked: Section) -> None:
    asked.done()
    raise_if_invalid(asked)

"""What can be asked of a running driver: one request, one answer, both mappings. a wrong one changes nothing.

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
        self._settings, self._hardware, self._armed_faults, self._cdi, self._journal, self._give_back = (
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

    def handle(self, request: object) -> Answer:
        """What came of a request: `ok` with facts, or an `error`."""
        request = Section("", request, [])
        try:
            verb = request.get("verb", str) or ""
            if not request.problems and verb not in self._verbs:
                request.add_problem("verb", f"is {verb!r}; {suggestion(verb, self._verbs)}")
            raise_if_invalid(request)
            return {"ok": True, **self._verbs[verb](request)}
        except (DriverError, OSError) as refused:
            return {"ok": False, "error": str(refused)}
        except Exception as broken:  # whoever asks gets an answer, also about an error of the driver itself
            log.exception("a request to change the hardware")
            return {"ok": False, "error": f"the driver has an error of its own: {broken!r}"}

    def _changing(self, verb: str) -> Callable[[Section], Answer]:
        def change(request: Section) -> Answer:
            if verb == "restore" and "device" not in request.content:
                _finish(request)
                did = self._hardware.restore_all()
            else:
                did = self._hardware.change(verb, request)
            if did:
                self._journal.record("control", **request.content)
            return {"changed": did}

        return change

    def _fault(self, request: Section) -> Answer:
        fault = armed_faults.parse(request, self._hardware.device)
        _finish(request)
        if not self._armed_faults.arm(fault):
            raise ConfigurationError("too many faults are armed; clear them first")
        self._journal.record("control", **request.content)
        return {"changed": True}

    def _clear(self, request: Section) -> Answer:
        _finish(request)
        count = self._armed_faults.clear()
        self._journal.record("control", verb="clear", cleared=count)
        return {"changed": bool(count), "cleared": count}

    def _crash(self, request: Section) -> Answer:
        point = armed_faults.check_point(request)
        _finish(request)
        self._armed_faults.arm_crash(point)
        self._journal.record("control", **request.content)
        return {"changed": True}

    def _lose_cdi(self, request: Section) -> Answer:
        _finish(request)
        count = self._cdi.remove_all()
        self._journal.record("control", verb="lose-cdi", lost=count)
        return {"changed": bool(count), "lost": count}

    def _release(self, request: Section) -> Answer:
        uid = request.name("claim", UID, "the UID of a claim")
        force = bool(request.get("force", bool, False))
        _finish(request)
        try:
            did = self._give_back(uid, force)
        except ClaimRefused as needed:
            raise ConfigurationError(f"nothing was changed: {needed}") from needed
        if did:
            self._journal.record("control", **request.content)
        return {"changed": did}

    def _state(self, request: Section) -> Answer:
        _finish(request)
        return {
            "driver": self._settings.driver,
            "node": self._settings.node,
            "devices": list(self._hardware.device_names),
            "changes": self._hardware.changes(),
            **self._armed_faults.as_data(),
            "journal": self._journal.last_number,
        }

    def _read_journal(self, request: Section) -> Answer:
        since = request.get("since", int, 0) or 0
        most = request.get("limit", int, _MOST_ENTRIES)
        if most is None or not 1 <= most <= _MOST_ENTRIES:
            request.add_problem("limit", f"must be 1 to {_MOST_ENTRIES}")
        _finish(request)
        return {"entries": self._journal.entries_after(since, most or 1), "last": self._journal.last_number}


def _finish(request: Section) -> None:
    request.check_unknown_keys()
    raise_if_invalid(request)

"""The requests to a running driver. The control socket passes each request and returns the response; both are mappings.

A request has a `verb` and the keys that the verb needs. An invalid request changes nothing, and its error names the valid choices.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from fake_driver import crash_points
from fake_driver.control.live_hardware import LiveHardware
from fake_driver.control.overrides import VERBS
from fake_driver.crash_points import ArmedCrashes
from fake_driver.errors import ClaimRefused, ConfigurationError, DriverError, suggestion
from fake_driver.journal import Journal
from fake_driver.kubelet import armed_faults
from fake_driver.kubelet.armed_faults import ArmedFaults
from fake_driver.name_patterns import UID
from fake_driver.preparing.cdi import CdiFolder
from fake_driver.settings import Settings
from fake_driver.strict_decoding import Section, raise_if_invalid

log = logging.getLogger(__name__)
Response = dict[str, Any]
_MAX_ENTRIES = 1000


class RequestHandler:
    """Handles requests to a running driver. A request is validated completely before it has an effect; effects are in the journal."""

    def __init__(
        self,
        settings: Settings,
        hardware: LiveHardware,
        faults: ArmedFaults,
        crashes: ArmedCrashes,
        cdi: CdiFolder,
        journal: Journal,
        release: Callable[[str, bool], bool],
    ) -> None:
        self._settings, self._hardware, self._faults, self._crashes = settings, hardware, faults, crashes
        self._cdi, self._journal, self._release_claim = cdi, journal, release
        self._verbs: Mapping[str, Callable[[Section], Response]] = {
            **{verb: self._changer(verb) for verb in VERBS},
            "fault": self._fault,
            "clear": self._clear,
            "crash": self._crash,
            "lose-cdi": self._lose_cdi,
            "release": self._release,
            "state": self._state,
            "journal": self._read_journal,
        }

    def handle(self, content: object) -> Response:
        """Handle a request and return the response: `ok` with facts, or an `error`."""
        request = Section("", content, [])
        try:
            verb = request.get("verb", str) or ""
            if not request.problems and verb not in self._verbs:
                request.add_problem("verb", f"is {verb!r}; {suggestion(verb, self._verbs)}")
            raise_if_invalid(request)
            return {"ok": True, **self._verbs[verb](request)}
        except (DriverError, OSError) as refused:
            return {"ok": False, "error": str(refused)}
        except Exception as error:  # the client gets a response also after an internal error
            log.exception("internal error during a control request")
            return {"ok": False, "error": f"internal error of the driver: {error!r}"}

    def _changer(self, verb: str) -> Callable[[Section], Response]:
        def change(request: Section) -> Response:
            if verb == "restore" and "device" not in request.content:
                _validate(request)
                changed = self._hardware.restore_all()
            else:
                changed = self._hardware.change(verb, request)
            if changed:
                self._journal.record("control", **request.content)
            return {"changed": changed}

        return change

    def _fault(self, request: Section) -> Response:
        fault = armed_faults.parse(request, self._hardware.device)
        _validate(request)
        if not self._faults.arm(fault):
            raise ConfigurationError("too many faults are armed; clear them first")
        self._journal.record("control", **request.content)
        return {"changed": True}

    def _clear(self, request: Section) -> Response:
        _validate(request)
        count = self._faults.clear() + self._crashes.clear()
        self._journal.record("control", verb="clear", cleared=count)
        return {"changed": bool(count), "cleared": count}

    def _crash(self, request: Section) -> Response:
        point = crash_points.parse_point(request)
        _validate(request)
        self._crashes.arm(point)
        self._journal.record("control", **request.content)
        return {"changed": True}

    def _lose_cdi(self, request: Section) -> Response:
        _validate(request)
        count = self._cdi.remove_all()
        self._journal.record("control", verb="lose-cdi", lost=count)
        return {"changed": bool(count), "lost": count}

    def _release(self, request: Section) -> Response:
        uid = request.matching("claim", UID, "the UID of a claim")
        force = bool(request.get("force", bool, False))
        _validate(request)
        try:
            released = self._release_claim(uid, force)
        except ClaimRefused as refused:
            raise ConfigurationError(f"nothing was changed: {refused}") from refused
        if released:
            self._journal.record("control", **request.content)
        return {"changed": released}

    def _state(self, request: Section) -> Response:
        _validate(request)
        return {
            "driver": self._settings.driver,
            "node": self._settings.node,
            "devices": list(self._hardware.device_names),
            "changes": self._hardware.changes(),
            "faults": self._faults.as_data(),
            "crash": self._crashes.points,
            "journal": self._journal.last_number,
        }

    def _read_journal(self, request: Section) -> Response:
        since = request.get("since", int, 0) or 0
        limit = request.get("limit", int, _MAX_ENTRIES)
        if limit is None or not 1 <= limit <= _MAX_ENTRIES:
            request.add_problem("limit", f"must be 1 to {_MAX_ENTRIES}")
        _validate(request)
        return {"entries": self._journal.entries_after(since, limit or 1), "last": self._journal.last_number}


def _validate(request: Section) -> None:
    request.check_unknown_keys()
    raise_if_invalid(request)

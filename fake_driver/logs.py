"""The log on standard error: one line for each event, as logfmt or JSON, with the same event names as the journal.

Every line has time, level, logger and message. Lines about a claim have its namespace, name and uid; timed operations have `seconds`.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

FORMATS = ("logfmt", "json")
LEVELS = ("debug", "info", "warning", "error")
# The driver logs no token itself, but texts of the API server and of users are logged and may contain one.
_SECRET = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*|(?<=Bearer )\S+")
_PLAIN = re.compile(r"[^\s\"=\\]+")


class LineFormatter(logging.Formatter):
    """Formats a record as one line; `fixed` fields are in all lines."""

    def __init__(self, line_format: str, fixed: Mapping[str, str]) -> None:
        super().__init__()
        self._line_format, self._fixed = line_format, {key: value for key, value in fixed.items() if value}

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without secrets and line breaks."""
        facts = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._fixed,
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            facts["traceback"] = self.formatException(record.exc_info)
        line = (
            json.dumps(facts) if self._line_format == "json" else " ".join(f"{k}={_word(v)}" for k, v in facts.items())
        )
        return _SECRET.sub("[secret]", line)


def configure(line_format: str, level: str, **fixed: str) -> None:
    """Log to standard error from now on, in one of `FORMATS`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(line_format, fixed))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def _word(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)

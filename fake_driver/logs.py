"""The log: one line for each event, as logfmt or JSON, with the same words as the journal. `__main__` sets it up, once.

Every line has time, level, logger and message; what is about a claim has its namespace, name and uid, what took time its seconds.
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
# Nobody logs a token on purpose; but the API server's words, and those of users, end up here.
_SECRET = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*|(?<=Bearer )\S+")
_PLAIN = re.compile(r"[^\s\"=\\]+")


class LineFormatter(logging.Formatter):
    """Makes a line of a record. `fixed` is in all of them."""

    def __init__(self, shape: str, fixed: Mapping[str, str]) -> None:
        super().__init__()
        self._shape, self._fixed = shape, {key: value for key, value in fixed.items() if value}

    def format(self, record: logging.LogRecord) -> str:
        """The line, without any secret and without any break in it."""
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
        line = json.dumps(facts) if self._shape == "json" else " ".join(f"{k}={_word(v)}" for k, v in facts.items())
        return _SECRET.sub("[secret]", line)


def configure(shape: str, level: str, **fixed: str) -> None:
    """From now on, on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(shape, fixed))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def _word(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)

"""Logs: on stderr, one line an event, without secrets, and without what steers a terminal."""

import logging
import re
import sys
from collections.abc import Callable

from .settings import LogLevel

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What pages could do to the terminal of the one who reads the log."""


class Redacted(logging.Formatter):
    """``mask`` takes out what the person declared secret; the redaction filter, what looks like a secret."""

    def __init__(self, format: str, mask: Callable[[str], str]) -> None:
        super().__init__(format)
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        from watchkeeper.context.redact import redact

        return _STEERING.sub(" ", redact(self._mask(super().format(record))))


def start_logging(level: LogLevel, mask: Callable[[str], str]) -> None:
    """Everything in this process logs from here on; other libraries at warning."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Redacted("%(asctime)s %(levelname)s %(name)s: %(message)s", mask))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("watchkeeper").setLevel(level.upper())

"""Logs: on stderr, one line an event, without secrets."""

import logging
import sys

from .settings import LogLevel


class _Redacted(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        from watchkeeper.context.redact import redact

        return redact(super().format(record))


def start_logging(level: LogLevel) -> None:
    """Everything in this process logs from here on; other libraries at warning."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Redacted("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("watchkeeper").setLevel(level.upper())

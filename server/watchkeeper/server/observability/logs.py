"""Logs: on stderr and, where ``server.log_file`` says so, in a file; as text for people or JSON for programs.

Rules: one line an event, whose fields say which call it belongs to. Every line goes through the one redaction filter;
what the person declared secret is masked, what steers a terminal is taken out, and nothing from outside can begin a
line of its own. Arguments, results and content of pages are not logged; texts of unexpected errors are cut, for they
may hold some. A file is its owner's alone and capped; that it cannot be written any more is said once, on stderr.
"""

import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from types import TracebackType
from typing import Any

from ..settings import LogFormat, LogLevel

FIELDS = ("call", "tool", "task", "principal", "outcome", "ms", "reason", "browser", "pid")
"""What a line may have beside its message; everything else that code attaches to a record is left out."""
IN_MESSAGE = frozenset({"tool", "outcome", "ms", "reason", "browser", "pid"})
"""Fields that the message says anyway: in text they are not repeated."""
MESSAGE_CAP = 2_000
FOREIGN_CAP = 300
"""Of messages of other libraries, and of each line of a traceback: both may quote what came from outside."""
TRACEBACK_LINES = 100
FILE_BYTES = 10 << 20
FILES_BEFORE = 3
OURS = "watchkeeper"

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What pages could do to the terminal of the one who reads the log."""
_PLAIN = re.compile(r"[\w.:@/+-]+")
_fields: ContextVar[Mapping[str, str]] = ContextVar("watchkeeper_log_fields")


@contextmanager
def fields(**values: str) -> Iterator[dict[str, str]]:
    """Everything that is logged inside, in threads too, has these fields; more may be put into what is given."""
    made = dict(values)
    token = _fields.set(made)
    try:
        yield made
    finally:
        _fields.reset(token)


class CannotLog(Exception):
    """The log file cannot be written. Its text is a sentence for the person."""


class Redacted(logging.Formatter):
    """``mask`` takes out what the person declared secret; the redaction filter, what looks like a secret."""

    def __init__(self, format: LogFormat, mask: Callable[[str], str]) -> None:
        super().__init__()
        self._as_json = format == "json"
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        cap = MESSAGE_CAP if record.name.partition(".")[0] == OURS else FOREIGN_CAP
        facts = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._safe(_cut(record.getMessage(), cap)),
            **{name: self._safe(value) for name, value in _of(record).items()},
        }
        traceback = self._safe(self._traceback(record))
        if self._as_json:
            return json.dumps(facts | ({"traceback": traceback} if traceback else {}), ensure_ascii=False, default=str)
        more = {name: facts[name] for name in FIELDS if name in facts and name not in IN_MESSAGE}
        end = f" [{' '.join(f'{name}={_word(value)}' for name, value in more.items())}]" if more else ""
        message = str(facts["message"]).replace("\n", "\\n")
        lines = [f"{facts['time']} {record.levelname} {record.name}: {message}{end}"]
        return "\n".join([*lines, *(f"    {line}" for line in traceback.splitlines())])

    def _traceback(self, record: logging.LogRecord) -> str:
        if not record.exc_info or record.exc_info[0] is None:
            return ""
        lines = self.formatException(record.exc_info).split("\n")
        left_out = [f"… {len(lines) - TRACEBACK_LINES} lines …"] if len(lines) > TRACEBACK_LINES else []
        lines = [*lines[: TRACEBACK_LINES // 2], *left_out, *lines[-TRACEBACK_LINES // 2 :]] if left_out else lines
        return "\n".join(_cut(line, FOREIGN_CAP) for line in lines)

    def _safe(self, value: Any) -> Any:
        from watchkeeper.context.redact import redact

        if not isinstance(value, str):
            return value
        sound = value.encode("utf-8", "replace").decode()
        return _STEERING.sub(" ", redact(self._mask(sound)))


class OwnFile(RotatingFileHandler):
    """``FILE_BYTES`` and ``FILES_BEFORE`` older ones. Notices when somebody else has renamed the file, and goes on in a
    new one. Raises OSError where it cannot be written."""

    def __init__(self, path: str) -> None:
        super().__init__(path, maxBytes=FILE_BYTES, backupCount=FILES_BEFORE, encoding="utf-8")
        self._failed = False

    def _open(self) -> Any:
        # Without waiting: a pipe that nobody reads would keep us for ever.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
        return os.fdopen(os.open(self.baseFilename, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace")

    def shouldRollover(self, record: logging.LogRecord) -> bool:
        if self.stream is not None and not self._is_current(self.stream.fileno()):
            stream, self.stream = self.stream, None
            stream.close()
        return bool(super().shouldRollover(record))

    def handleError(self, record: logging.LogRecord) -> None:
        if not self._failed:
            self._failed = True
            print(f"watchkeeper: {_cannot(self.baseFilename, sys.exc_info()[1])}", file=sys.stderr)  # noqa: T201

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self.baseFilename))  # noqa: PTH116
        except OSError:
            return False


class _Stderr(logging.StreamHandler[Any]):
    def handleError(self, record: logging.LogRecord) -> None:
        """Nobody reads stderr any more, and there is nowhere else to say so."""


def start_logging(
    level: LogLevel, mask: Callable[[str], str], *, format: LogFormat = "text", file: str | None = None
) -> None:
    """Everything in this process logs from here on; other libraries at warning. Raises CannotLog."""
    handlers: list[logging.Handler] = [_Stderr(sys.stderr)]
    if file is not None:
        try:
            handlers.append(OwnFile(os.path.expanduser(file)))  # noqa: PTH111 - RotatingFileHandler takes texts
        except OSError as error:
            raise CannotLog(_cannot(file, error)) from None
    root = logging.getLogger()
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = handlers
    for handler in handlers:
        handler.setFormatter(Redacted(format, mask))
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(level.upper())


def log_crashes() -> None:
    """What nobody catches is logged as everything is, instead of being printed as it stands."""
    log = logging.getLogger(f"{OURS}.server")

    def crashed(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        log.critical("%s ended this process", kind.__name__, exc_info=(kind, error, where))

    def thread_crashed(of: threading.ExceptHookArgs) -> None:
        if of.exc_value is not None:
            about = (of.exc_type, of.exc_value, of.exc_traceback)
            log.critical("%s ended a thread", of.exc_type.__name__, exc_info=about)

    sys.excepthook = crashed
    threading.excepthook = thread_crashed


def _of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of the call that is running, and those that the line itself has."""
    found = {**_fields.get({}), **{name: value for name, value in vars(record).items() if name in FIELDS}}
    return {name: found[name] for name in FIELDS if found.get(name) not in (None, "")}


def _cut(text: str, cap: int) -> str:
    return text if len(text) <= cap else f"{text[:cap]}… ({len(text)} characters)"


def _word(value: Any) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _cannot(path: str, error: BaseException | None) -> str:
    why = getattr(error, "strerror", None) or str(error)
    return f"the log file {path} cannot be written: {why}. Name another with server.log_file, or none."

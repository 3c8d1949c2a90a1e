"""Bounded reading: lines of a JSONL file, or the elements of one large JSON document, one at a time.

Rules:
- Memory is bounded by the largest line or element, and that by `MAX_ITEM`; a longer one is named and passed over.
- Text is UTF-8. Bytes that are not are replaced, and the line is named.
- A line that is not JSON is named by its number and does not end the reading. Inside one document the elements before a
  fault are kept, and what follows it cannot be: the fault is named with its line.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from .model import Problem

MAX_ITEM = 64 * 2**20
_CHUNK = 256 * 1024
_DELIMITERS = tuple(" \t\r\n,]}:")
_NUMBER = 64
_BOM = "\ufeff"

Report = Callable[[Problem], None]


def lines(stream: BinaryIO, report: Report, *, max_line: int = MAX_ITEM) -> Iterator[tuple[int, Any]]:
    """(line number, decoded JSON value) for every line that holds one; blank lines are passed over."""
    number = 0
    while raw := stream.readline(max_line + 1):
        number += 1
        if len(raw) > max_line and not raw.endswith(b"\n"):
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(_CHUNK)
            report(Problem(number, f"longer than {max_line:,} bytes; passed over"))
            continue
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            text = raw.decode("utf-8", "replace")
            report(Problem(number, f"not UTF-8 at byte {error.start}; the bad bytes were replaced"))
        if number == 1:
            text = text.removeprefix(_BOM)
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            report(Problem(number, f"not JSON ({_reason(error)}); passed over"))
            continue
        yield number, value


def document(
    stream: BinaryIO, report: Report, *, streamed: str = "messages", max_item: int = MAX_ITEM
) -> Iterator[tuple[int, str | None, Any]]:
    """Walk one JSON document without holding it.

    Yields (line, None, element) for each element of the array that the document is, or that its key `streamed` holds,
    and (line, key, value) for every other key of an object.
    """
    window = _Window(stream, report, max_item)
    try:
        opening = window.peek()
        if opening == "[":
            yield from _elements(window)
        elif opening == "{":
            window.take()
            while window.peek() != "}":
                line, key = window.value()
                window.expect(":")
                if key == streamed and window.peek() == "[":
                    yield from _elements(window)
                else:
                    line, value = window.value()
                    yield line, str(key), value
                if window.peek() != ",":
                    break
                window.take()
            window.expect("}")
        else:
            raise _Fault(window.line(), "neither a JSON array nor an object")
        if window.peek():
            raise _Fault(window.line(), "more text after the end of the document")
    except _Fault as fault:
        report(Problem(fault.line, f"{fault.reason}; what follows could not be read"))


def _elements(window: _Window) -> Iterator[tuple[int, None, Any]]:
    window.expect("[")
    if window.peek() == "]":
        window.take()
        return
    while True:
        line, value = window.value()
        yield line, None, value
        if window.peek() != ",":
            break
        window.take()
    window.expect("]")


class _Fault(Exception):
    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class _Window:
    """A moving window of text over a byte stream, with the number of the line it stands on."""

    def __init__(self, stream: BinaryIO, report: Report, max_item: int) -> None:
        self._stream = stream
        self._report = report
        self._max_item = max_item
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self._json = json.JSONDecoder()
        self._text = ""
        self._at = 0
        self._passed_lines = 1
        self._ended = False
        self._fill(_CHUNK)
        self._text = self._text.removeprefix(_BOM)

    def line(self) -> int:
        return self._passed_lines + self._text.count("\n", 0, self._at)

    def peek(self) -> str:
        """The next character that is not white space, or '' at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._fill(_CHUNK)

    def take(self) -> None:
        self._at += 1

    def expect(self, char: str) -> None:
        found = self.peek()
        if found != char:
            raise _Fault(self.line(), f"expected {char!r}, found {found!r}" if found else "the file ends too early")
        self._at += 1

    def value(self) -> tuple[int, Any]:
        """(line, value) of the JSON value that begins here."""
        self.peek()
        line = self.line()
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except RecursionError:
                raise _Fault(line, "nested too deeply") from None
            except json.JSONDecodeError as error:
                unfinished = error.msg.startswith("Unterminated") or not self._text[error.pos :].strip()
                if self._ended or not (unfinished or len(self._text) - error.pos < 64):
                    where = self._passed_lines + self._text.count("\n", 0, error.pos)
                    raise _Fault(
                        where, "the file ends too early" if unfinished else f"not JSON ({error.msg})"
                    ) from None
            else:
                # A number at the edge may go on in the next chunk: `0` and then `.5`.
                if self._ended or self._text[end : end + 1] in _DELIMITERS or len(self._text) - end > _NUMBER:
                    self._at = end
                    return line, value
            held = len(self._text) - self._at
            if held > self._max_item:
                raise _Fault(line, f"an element longer than {self._max_item:,} characters")
            self._fill(max(_CHUNK, held))

    def _fill(self, size: int) -> None:
        if self._at:
            self._passed_lines += self._text.count("\n", 0, self._at)
            self._text, self._at = self._text[self._at :], 0
        raw = self._stream.read(size)
        self._ended = not raw
        state = self._decoder.getstate()
        try:
            self._text += self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError:
            self._report(Problem(self._passed_lines, "bytes that are not UTF-8 from here on were replaced"))
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
            self._decoder.setstate(state)
            self._text += self._decoder.decode(raw, final=self._ended)


def _reason(error: Exception) -> str:
    return f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)

"""How a client's file changes when an entry is written or taken out, decided before anything is written.

Rules: a change says the whole text after it, and that text was read again: it holds what the one before held, and our
entry, and nothing else. An entry that is not ours is left alone unless that is forced, and comes back when ours goes.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ToolError
from . import jsonc
from .config_file import ConfigFile
from .launch import is_ours
from .ledger import Piece


@dataclass(frozen=True, slots=True)
class Change:
    """``text`` is None where the file goes. ``piece`` is what undoing will need; None where something was undone."""

    before: ConfigFile
    text: str | None
    path: tuple[str, ...]
    piece: Piece | None

    @property
    def nothing(self) -> bool:
        return self.text == (None if self.before.data is None else self.before.text)


def current(file: ConfigFile, path: Sequence[str], wanted: Any = None) -> Any:
    """The value there; None where there is none. ``wanted``: what to paste where the file is not understood.

    Raises: ToolError ``not_understood``.
    """
    if file.blank:
        return None
    with _Understood(file, path, wanted):
        jsonc.parse(file.text)
        text = jsonc.get(file.text, path)
        return None if text is None else jsonc.parse(text)


def put(file: ConfigFile, path: tuple[str, ...], value: Any, earlier: Piece | None, *, force: bool) -> Change:
    """An entry that is new, or in the place of one of ours."""
    there = current(file, path)
    if there is not None and not is_ours(there) and not force:
        raise ToolError(
            "not_ours",
            f"{file.path} has an entry {path[-1]!r} that does not start Watchkeeper; it was left alone.",
            "Choose another name with --name, or replace it with --force; uninstall puts it back.",
        )
    base = "{}\n" if file.blank else file.text
    with _Understood(file, path, value):
        before = jsonc.get(base, path)
        piece = Piece(str(file.real), path, before, jsonc.depth(base, path), file.data is None)
        if earlier is not None and is_ours(there):
            # What stood there before the first time is what undoing goes back to.
            piece = earlier
        text = base if there == value else jsonc.put(base, path, value)
        _check(file, base, text, path, lambda _: value)
    return Change(file, text, path, piece)


def take_out(file: ConfigFile, path: tuple[str, ...], earlier: Piece | None, *, force: bool) -> Change | None:
    """None where there is nothing to take out."""
    there = current(file, path)
    if there is None:
        return None
    if not is_ours(there) and not force:
        raise ToolError(
            "not_ours",
            f"The entry {path[-1]!r} in {file.path} does not start Watchkeeper; it was left alone.",
            "Take it out with --force, or by hand.",
        )
    with _Understood(file, path, None):
        if earlier is not None and earlier.before is not None:
            text = jsonc.put_text(file.text, path, earlier.before)
            restored = jsonc.parse(earlier.before)
            _check(file, file.text, text, path, lambda _: restored)
            return Change(file, text, path, None)
        text = jsonc.remove(file.text, path)
        _check(file, file.text, text, path, lambda _: _GONE)
        return Change(file, _emptied(text, path[:-1], earlier), path, None)


def put_element(
    file: ConfigFile, path: tuple[str, ...], value: Any, ours: Callable[[Any], bool], earlier: Piece | None
) -> Change:
    """An element of a list, in the place of those of ours."""
    base = "{}\n" if file.blank else file.text
    with _Understood(file, path, [value]):
        jsonc.parse(base)
        piece = Piece(str(file.real), path, None, jsonc.depth(base, path), file.data is None)
        there = jsonc.elements(base, path)
        if [one for one in there if ours(one)] == [value]:
            return Change(file, base, path, earlier or piece)
        text = _without_ours(base, path, ours)
        text = jsonc.append(text, path, value)
        _check(file, base, text, path, lambda old: [*(one for one in old or [] if not ours(one)), value])
    return Change(file, text, path, earlier or piece)


def take_out_elements(
    file: ConfigFile, path: tuple[str, ...], ours: Callable[[Any], bool], earlier: Piece | None
) -> Change | None:
    if file.blank:
        return None
    with _Understood(file, path, None):
        jsonc.parse(file.text)
        if not any(map(ours, jsonc.elements(file.text, path))):
            return None
        text = _without_ours(file.text, path, ours)
        _check(file, file.text, text, path, lambda old: [one for one in old if not ours(one)])
        return Change(file, _emptied(text, path, earlier), path, None)


def _without_ours(text: str, path: tuple[str, ...], ours: Callable[[Any], bool]) -> str:
    there = jsonc.elements(text, path)
    for index in reversed(range(len(there))):
        if ours(there[index]):
            text = jsonc.remove_element(text, path, index)
    return text


def _emptied(text: str, path: tuple[str, ...], earlier: Piece | None) -> str | None:
    """Without the containers that were made for what is gone, and that are empty now; the file itself included."""
    known = earlier.had if earlier is not None else len(path)
    for depth in range(len(path), known, -1):
        if jsonc.parse(jsonc.get(text, path[:depth]) or "0") not in ({}, []):
            break
        text = jsonc.remove(text, path[:depth])
    if earlier is not None and earlier.new_file and text.strip() == "{}":
        return None
    return text


_GONE = object()


def _check(file: ConfigFile, before: str, after: str, path: tuple[str, ...], new: Callable[[Any], Any]) -> None:
    """Raises ToolError where the text after a change is not exactly what it should be."""
    wanted = jsonc.parse(before)
    *above, last = path
    part = wanted
    for key in above:
        part = part.setdefault(key, {})
    value = new(part.get(last))
    if value is _GONE:
        part.pop(last, None)
    else:
        part[last] = value
    if jsonc.parse(after) != wanted:
        raise ToolError(
            "not_understood",
            f"{file.path} could not be changed without touching something else; it was left alone.",
            f"Change it by hand:\n{snippet(path, None if value is _GONE else value)}",
        )


class _Understood:
    """Turns what ``jsonc`` raises into what people read."""

    def __init__(self, file: ConfigFile, path: Sequence[str], value: Any) -> None:
        self.file, self.path, self.value = file, path, value

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, jsonc.NotUnderstood):
            by_hand = f" Or add this by hand:\n{snippet(self.path, self.value)}" if self.value is not None else ""
            raise ToolError(
                "not_understood",
                f"{self.file.path}, {error}; it was left alone.",
                f"Mend it in an editor and try again.{by_hand}",
            ) from None


def snippet(path: Sequence[str], value: Any) -> str:
    """What somebody would paste."""
    for key in reversed(path):
        value = {key: value}
    return json.dumps(value, indent=2, ensure_ascii=False)

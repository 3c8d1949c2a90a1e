"""Small changes to JSON texts that people and programs also write: JSON, and JSON with comments and trailing commas.

Rules: text in, text out, no files. Only the characters of the changed member change; everything else, comments,
order, indentation and line ends included, stays as it is. A text that is not understood is refused, with the line.
What is put in and removed again leaves the text as it was.

Source: https://code.visualstudio.com/docs/languages/json#_json-with-comments
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Path = Sequence[str]
"""Keys from the outermost object inwards."""
_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_DECODER = json.JSONDecoder()
_ENDS = {"{": "}", "[": "]"}


class NotUnderstood(Exception):
    """The text is not what it should be; the message says where."""

    def __init__(self, text: str, at: int, what: str) -> None:
        super().__init__(f"line {text.count(chr(10), 0, at) + 1}: {what}")


@dataclass(frozen=True, slots=True)
class _Item:
    """A member of an object, or an element of a list: where it starts, its value's span, the comma behind it or -1."""

    key: str
    start: int
    value: int
    end: int
    comma: int


@dataclass(frozen=True, slots=True)
class _Container:
    start: int
    end: int
    items: tuple[_Item, ...]


def parse(text: str) -> Any:
    """The value of the whole text. Raises NotUnderstood."""
    try:
        value, at = _value(text, _blank(text, 0))
    except RecursionError:
        raise NotUnderstood(text, 0, "it is nested too deeply") from None
    at = _blank(text, at)
    if at < len(text):
        raise NotUnderstood(text, at, "something follows the value")
    return value


def get(text: str, path: Path) -> str | None:
    """The text of the value there, as it stands; None where there is none. Raises NotUnderstood."""
    item = _find(text, path)
    return None if item is None else text[item.value : item.end]


def depth(text: str, path: Path) -> int:
    """How many keys of the path are there already. Raises NotUnderstood."""
    return next((n for n in range(len(path), 0, -1) if _find(text, path[:n]) is not None), 0)


def put(text: str, path: Path, value: Any) -> str:
    """The text with this value there, in the place of what was; objects on the way are made. Raises NotUnderstood."""
    known = depth(text, path)
    if known == len(path):
        item = _found(text, path)
        rendered = _rendered(value, _line_indent(text, item.start), text)
        return text[: item.value] + rendered + text[item.end :]
    for key in reversed(path[known + 1 :]):
        value = {key: value}
    return _added(text, _object(text, path[:known]), path[known], value)


def put_text(text: str, path: Path, raw: str) -> str:
    """As ``put``, of a value that is given as it shall stand; something has to be there."""
    item = _found(text, path)
    return text[: item.value] + raw + text[item.end :]


def remove(text: str, path: Path) -> str:
    """The text without this member, which has to be there. Raises NotUnderstood."""
    item = _found(text, path)
    return _without(text, _object(text, path[:-1]), item)


def elements(text: str, path: Path) -> list[Any]:
    """The values of the list there; empty where there is none. Raises NotUnderstood."""
    if _find(text, path) is None:
        return []
    return [_value(text, item.value)[0] for item in _list(text, path).items]


def append(text: str, path: Path, value: Any) -> str:
    """The text with one more element in the list there, which is made where it is missing. Raises NotUnderstood."""
    if _find(text, path) is None:
        return put(text, path, [value])
    return _added(text, _list(text, path), None, value)


def remove_element(text: str, path: Path, index: int) -> str:
    """The text without this element. Raises NotUnderstood."""
    container = _list(text, path)
    return _without(text, container, container.items[index])


# --- reading -----------------------------------------------------------------------------------------------------


def _blank(text: str, at: int) -> int:
    """Where white space and comments end."""
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)  # most values hold no comments
    except ValueError:
        pass
    if text[at : at + 1] not in _ENDS:
        raise NotUnderstood(text, at, "a value was expected")
    container = _scan(text, at)
    values = [(item.key, _value(text, item.value)[0]) for item in container.items]
    return (dict(values) if text[at] == "{" else [value for _, value in values]), container.end


def _scan(text: str, start: int) -> _Container:
    """The members or elements of the container that begins there."""
    end = _ENDS[text[start]]
    items: list[_Item] = []
    at = _blank(text, start + 1)
    while text[at : at + 1] != end:
        if items and items[-1].comma < 0:
            raise NotUnderstood(text, at, f"a comma or {end} was expected")
        first, key = at, ""
        if end == "}":
            key, at = _key(text, at)
        value = at
        _, at = _value(text, at)
        after = _blank(text, at)
        comma = after if text[after : after + 1] == "," else -1
        items.append(_Item(key, first, value, at, comma))
        at = _blank(text, comma + 1) if comma >= 0 else after
    return _Container(start, at + 1, tuple(items))


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise NotUnderstood(text, at, "a key in double quotes was expected")
    try:
        key, at = _DECODER.raw_decode(text, at)
    except ValueError:
        raise NotUnderstood(text, at, "the key is not a JSON text") from None
    at = _blank(text, at)
    if text[at : at + 1] != ":":
        raise NotUnderstood(text, at, "a colon was expected")
    return str(key), _blank(text, at + 1)


def _find(text: str, path: Path) -> _Item | None:
    at, found = _blank(text, 0), None
    for n, key in enumerate(path):
        if text[at : at + 1] != "{":
            raise NotUnderstood(text, at, f"{'.'.join(path[:n]) or 'the whole'} is not an object")
        same = [item for item in _scan(text, at).items if item.key == key]
        if len(same) > 1:
            raise NotUnderstood(text, same[1].start, f"{key!r} is there twice")
        if not same:
            return None
        found = same[0]
        at = found.value
    return found


def _found(text: str, path: Path) -> _Item:
    item = _find(text, path)
    if item is None:
        raise NotUnderstood(text, 0, f"{'.'.join(path)} is not there")
    return item


def _object(text: str, path: Path) -> _Container:
    return _container(text, path, "{", "an object")


def _list(text: str, path: Path) -> _Container:
    return _container(text, path, "[", "a list")


def _container(text: str, path: Path, begins: str, what: str) -> _Container:
    at = _found(text, path).value if path else _blank(text, 0)
    if text[at : at + 1] != begins:
        raise NotUnderstood(text, at, f"{'.'.join(path) or 'the whole'} is not {what}")
    return _scan(text, at)


# --- writing -----------------------------------------------------------------------------------------------------


def _added(text: str, into: _Container, key: str | None, value: Any) -> str:
    items = into.items
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if items and items[-1].comma < 0:
        text = text[: items[-1].end] + "," + text[items[-1].end :]
        end = into.end + 1
        after = items[-1].end + 1
    else:
        end = into.end
        after = items[-1].comma + 1 if items else into.start + 1
    trailing = text[after : end - 1]
    place = after + len(trailing.rstrip())  # behind comments, if there are any
    again = "," if items and items[-1].comma >= 0 else ""  # where the last one had a comma, the last one has one
    if items and not _newline(text[into.start : items[0].start]) and "//" not in trailing:
        rendered = json.dumps(value, ensure_ascii=False)
        return f"{text[:place]} {name}{rendered}{again}{text[place:]}"
    base = _line_indent(text, into.start)
    on_line = next((item for item in reversed(items) if _first_on_line(text, item.start)), None)
    indent = _line_indent(text, on_line.start) if on_line else base + _unit(text)
    member = f"{_eol(text)}{indent}{name}{_rendered(value, indent, text)}{again}"
    rest = text[place:]
    if not _newline(text[place : end - 1]):
        rest = f"{_eol(text)}{base}{text[end - 1 :]}"
    return text[:place] + member + rest


def _without(text: str, container: _Container, item: _Item) -> str:
    start, end = item.start, item.comma + 1 if item.comma >= 0 else item.end
    before = len(text[:start].rstrip(" \t"))
    if _first_on_line(text, start):
        if _spaces(text, end) == len(text) or text[_spaces(text, end)] in "\r\n":
            before -= 2 if text[:before].endswith("\r\n") else 1
        else:  # the line end before it may end a comment, so it stays for what follows
            before, end = start, _spaces(text, end)
    elif item is container.items[0]:
        before, end = start, _spaces(text, end)
    kept = text[:before] + text[end:]
    place = container.items.index(item)
    if item.comma < 0 and place:
        comma = container.items[place - 1].comma
        kept = kept[:comma] + kept[comma + 1 :]
    # What is empty now, and was opened for it, closes again.
    at = container.start + 1
    if len(container.items) == 1 and not kept[at : _blank(kept, at)].strip():
        kept = kept[:at] + kept[_blank(kept, at) :]
    return kept


def _rendered(value: Any, indent: str, text: str) -> str:
    return json.dumps(value, indent=_unit(text), ensure_ascii=False).replace("\n", _eol(text) + indent)


def _unit(text: str) -> str:
    """What one level is indented by."""
    start = _blank(text, 0)
    items = _scan(text, start).items if text[start : start + 1] == "{" else ()
    return next((_line_indent(text, item.start) for item in items if _first_on_line(text, item.start)), "") or "  "


def _eol(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _newline(text: str) -> bool:
    return "\n" in text


def _spaces(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def _line_indent(text: str, at: int) -> str:
    line = text.rfind("\n", 0, at) + 1
    return text[line : _spaces(text, line)]


def _first_on_line(text: str, at: int) -> bool:
    line = text.rfind("\n", 0, at) + 1
    return line > 0 and not text[line:at].strip()

"""Names of keys and what a keyboard sends for them.

Rules: names are those of the DOM (``Enter``, ``ArrowDown``, ``a``), with short forms that people type; a combination is
joined with ``+``: ``Control+Shift+K``. The layout is US English; other characters are inserted as text.

Source: https://www.w3.org/TR/uievents-key/, https://chromedevtools.github.io/devtools-protocol/tot/Input/
"""

import difflib
from dataclasses import dataclass

from ..errors import InvalidArgument

ALT, CONTROL, META, SHIFT = 1, 2, 4, 8
MODIFIERS = {
    "alt": ALT, "option": ALT, "control": CONTROL, "ctrl": CONTROL, "meta": META, "command": META, "cmd": META,
    "super": META, "win": META, "shift": SHIFT, "controlormeta": CONTROL,
}  # fmt: skip
MODIFIER_KEYS = {ALT: ("Alt", 18), CONTROL: ("Control", 17), META: ("Meta", 91), SHIFT: ("Shift", 16)}


@dataclass(frozen=True, slots=True)
class Key:
    """One key: DOM ``key`` and ``code``, Windows key code, and the text that it types."""

    key: str
    code: str
    number: int
    text: str = ""
    shift: bool = False


_NAMED = {
    name.lower(): Key(name, code or name, number, text)
    for name, code, number, text in [
        ("Enter", "", 13, "\r"), ("Tab", "", 9, ""), ("Escape", "", 27, ""), ("Backspace", "", 8, ""),
        ("Delete", "", 46, ""), ("Insert", "", 45, ""), ("Home", "", 36, ""), ("End", "", 35, ""),
        ("PageUp", "", 33, ""), ("PageDown", "", 34, ""), ("ArrowLeft", "", 37, ""), ("ArrowUp", "", 38, ""),
        ("ArrowRight", "", 39, ""), ("ArrowDown", "", 40, ""), ("ContextMenu", "", 93, ""), ("CapsLock", "", 20, ""),
        ("Pause", "", 19, ""), ("PrintScreen", "", 44, ""), ("ScrollLock", "", 145, ""), ("NumLock", "", 144, ""),
        *((f"F{n}", "", 111 + n, "") for n in range(1, 25)),
        ("Shift", "ShiftLeft", 16, ""), ("Control", "ControlLeft", 17, ""), ("Alt", "AltLeft", 18, ""),
        ("Meta", "MetaLeft", 91, ""),
    ]
}  # fmt: skip
_SHORT = {
    "esc": "escape", "return": "enter", "del": "delete", "ins": "insert", "left": "arrowleft", "right": "arrowright",
    "up": "arrowup", "down": "arrowdown", "pgup": "pageup", "pgdn": "pagedown", "page_up": "pageup",
    "page_down": "pagedown", "space": " ", "spacebar": " ", "plus": "+", "ctrl": "control", "cmd": "meta",
}  # fmt: skip
_PLAIN = {
    "`": ("Backquote", 192), "-": ("Minus", 189), "=": ("Equal", 187), "[": ("BracketLeft", 219),
    "]": ("BracketRight", 221), "\\": ("Backslash", 220), ";": ("Semicolon", 186), "'": ("Quote", 222),
    ",": ("Comma", 188), ".": ("Period", 190), "/": ("Slash", 191), " ": ("Space", 32),
}  # fmt: skip
_SHIFTED = dict(zip('~_+{}|:"<>?)!@#$%^&*(', "`-=[]\\;',./0123456789", strict=True))


def key_of(character: str) -> Key | None:
    """The key that types a character; None where no key of the layout does."""
    if "a" <= character <= "z":
        return Key(character, f"Key{character.upper()}", ord(character.upper()), character)
    if "A" <= character <= "Z":
        return Key(character, f"Key{character}", ord(character), character, shift=True)
    if "0" <= character <= "9":
        return Key(character, f"Digit{character}", ord(character), character)
    if character in "\n\r":
        return _NAMED["enter"]
    if character == "\t":
        return _NAMED["tab"]
    plain = _SHIFTED.get(character, character)
    if plain.isdigit() and plain != character:
        return Key(character, f"Digit{plain}", ord(plain), character, shift=True)
    if plain in _PLAIN:
        code, number = _PLAIN[plain]
        return Key(character, code, number, character, shift=plain != character)
    return None


def parse(combination: str) -> tuple[int, Key]:
    """Modifiers and key of ``Control+A``. Raises InvalidArgument with the nearest name."""
    parts = combination.strip(" ") or combination
    names = parts.split("+")
    if parts.endswith("+"):  # the plus key itself: "+", "Control++"
        names = [*parts[:-1].rstrip("+").split("+"), "+"] if len(parts) > 1 else ["+"]
    *modifiers, name = [part for part in names if part != ""]
    flags = 0
    for modifier in modifiers:
        flag = MODIFIERS.get(modifier.strip().lower())
        if flag is None:
            raise _unknown(modifier, list(MODIFIERS))
        flags |= flag
    lowered = name.lower() if len(name) > 1 else name
    lowered = _SHORT.get(lowered, lowered)
    found = _NAMED.get(lowered) or (key_of(lowered) if len(lowered) == 1 else None)
    if found is None:
        raise _unknown(name, [key.key for key in _NAMED.values()])
    if flags & (CONTROL | ALT | META) and len(name) == 1 and name.isalpha() and not flags & SHIFT:
        found = key_of(name.lower()) or found  # Control+A is written with a capital and means no shift
    if flags & SHIFT and len(found.key) == 1 and found.key.isalpha():
        found = Key(found.key.upper(), found.code, found.number, found.text.upper(), shift=True)
    if flags & (CONTROL | ALT | META):
        found = Key(found.key, found.code, found.number, "", found.shift)
    return flags | (SHIFT if found.shift else 0), found


def _unknown(name: str, known: list[str]) -> InvalidArgument:
    lowered = {k.lower(): k for k in known}
    near = [lowered[k] for k in difflib.get_close_matches(name.lower(), lowered, 3, 0.4)]
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    return InvalidArgument(
        f"There is no key {name[:40]!r}.", f"{hint}Keys have DOM names: Enter, Escape, ArrowDown, F5, a, Control+A."
    )

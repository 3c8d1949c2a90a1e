"""The keyboard: fill, type, press.

Rules: ``fill`` replaces what a field holds, by editing it as a person would, so that frameworks notice; fields without
typing (date, color, range) are set and announce it. ``type_text`` sends every key. Text that no key types (accents,
CJK, emoji) is inserted as an input method does. Secrets are never repeated in a result.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Input/#method-insertText, .../#method-dispatchKeyEvent
"""

import asyncio
from typing import Any

from ...core.quoting import quoted
from ...errors import InvalidArgument
from ..effects import Effects, Watch
from ..keys import MODIFIER_KEYS, SHIFT, Key, key_of, parse
from ..port import PagePort
from ..state import state_of, top_frame
from ..targets import Target, call
from .result import Done

TEXT_CAP = 200_000
KEYS_AT_ONCE = 40
SHOWN = 80


async def fill(port: PagePort, ref: str, text: str, *, submit: bool = False) -> Done:
    """Replace what a field holds by ``text``; ``submit`` presses Enter then.

    Raises: InvalidArgument, UnknownRef, NotInteractable, and what ``Supervisor.call`` raises.
    """
    _check_length(text)
    target, ready = await call(port, ref, "prepareFill", text)
    worlds = state_of(port).worlds
    found: list[Any] = []

    async def act() -> None:
        if ready.get("done"):
            return
        if text:
            await port.call("Input.insertText", {"text": text})
        elif not ready.get("empty"):
            await key(port, parse("Delete"))

    async def after() -> None:
        found.append(await worlds.run_if_there(target.frame, "fieldState", target.number, text))

    effects = await Watch(port, target.frame.frame_id).perform(act, after)
    said = f"filled {target.what}" if text else f"emptied {target.what}"
    said += _difference(found[0] if found else None)
    if submit and not effects.dialogs:
        effects = await _press(port, target, "Enter")
        said += " and pressed Enter"
    return Done(said, effects)


async def type_text(port: PagePort, text: str, ref: str | None = None, *, submit: bool = False) -> Done:
    """Type ``text`` key by key, into an element (behind what it holds) or where the focus is."""
    _check_length(text)
    frame, what = top_frame(port), "the focused element"
    target = Target("", frame, 0, what)
    if ref is not None:
        target, _ = await call(port, ref, "prepareType")

    async def act() -> None:
        await _type(port, text)

    effects = await Watch(port, target.frame.frame_id).perform(act)
    said = f"typed {len(text)} characters into {target.what}"
    if submit and not effects.dialogs:
        effects = await _press(port, target, "Enter")
        said += " and pressed Enter"
    return Done(said, effects)


async def press(port: PagePort, keys: str, ref: str | None = None) -> Done:
    """Press a key or combination (``Control+A``), or several one after another, with spaces between."""
    combinations = keys.split() if keys.strip() else [keys] if keys else []
    if not combinations or len(combinations) > KEYS_AT_ONCE:
        raise InvalidArgument(
            f"Give 1 to {KEYS_AT_ONCE} keys.", "For example Enter, Control+A, or: ArrowDown ArrowDown."
        )
    parsed = [parse(one) for one in combinations]
    target = Target("", top_frame(port), 0, "")
    if ref is not None:
        target, _ = await call(port, ref, "prepareType")

    async def act() -> None:
        for one in parsed:
            await key(port, one)

    effects = await Watch(port, target.frame.frame_id).perform(act)
    return Done(f"pressed {' '.join(combinations)}{f' on {target.what}' if ref is not None else ''}", effects)


async def _press(port: PagePort, target: Target, name: str) -> Effects:
    return await Watch(port, target.frame.frame_id).perform(lambda: key(port, parse(name)))


async def _type(port: PagePort, text: str) -> None:
    """Keys in runs that are sent in one go; text that no key types in between."""
    run: list[Key] = []
    inserted = ""
    for character in text.replace("\r\n", "\n"):
        found = key_of(character)
        if found is None:
            await _send(port, run)
            run, inserted = [], inserted + character
            continue
        if inserted:
            await port.call("Input.insertText", {"text": inserted})
            inserted = ""
        run.append(found)
        if len(run) >= KEYS_AT_ONCE:
            await _send(port, run)
            run = []
    await _send(port, run)
    if inserted:
        await port.call("Input.insertText", {"text": inserted})


async def _send(port: PagePort, run: list[Key]) -> None:
    await asyncio.gather(*(key(port, (SHIFT if one.shift else 0, one)) for one in run))


async def key(port: PagePort, combination: tuple[int, Key]) -> None:
    """Press a key down and let it go, with its modifiers around it."""
    flags, pressed = combination
    held = [(flag, name, number) for flag, (name, number) in MODIFIER_KEYS.items() if flags & flag]
    if pressed.shift and len(pressed.key) == 1:
        held = [one for one in held if one[0] != SHIFT]  # a character that needs shift already says so
    events: list[dict[str, Any]] = []
    down = 0
    for flag, name, number in held:
        down |= flag
        events.append(_event("rawKeyDown", Key(name, f"{name}Left", number), down))
    events.append(_event("keyDown" if pressed.text else "rawKeyDown", pressed, flags))
    events.append(_event("keyUp", pressed, flags))
    for flag, name, number in reversed(held):
        down &= ~flag
        events.append(_event("keyUp", Key(name, f"{name}Left", number), down))
    await asyncio.gather(*(port.call("Input.dispatchKeyEvent", event) for event in events))


def _event(kind: str, one: Key, flags: int) -> dict[str, Any]:
    event: dict[str, Any] = {
        "type": kind,
        "key": one.key,
        "code": one.code,
        "windowsVirtualKeyCode": one.number,
        "modifiers": flags,
    }
    if kind == "keyDown":
        event |= {"text": one.text, "unmodifiedText": one.text.lower() if one.shift else one.text}
    return event


def _difference(found: Any) -> str:
    """What the field holds where it is not what was asked for."""
    if not isinstance(found, dict) or found.get("same", True):
        return ""
    if "value" not in found:
        return "; it holds something else than was given"
    value = str(found["value"])
    return f"; it now holds {quoted(value[:SHOWN])}{'…' if len(value) > SHOWN else ''}"


def _check_length(text: str) -> None:
    if len(text) > TEXT_CAP:
        raise InvalidArgument(
            f"The text has {len(text):,} characters, more than {TEXT_CAP:,}.",
            "Give it in parts, or upload it as a file.",
        )

"""From a ref to the element it names: where it is on screen, or why it cannot be acted on.

Rules: an action never starts on an element that is hidden, disabled, moving or covered; the error says which, and by
what. A stale ref is answered with the element that is nearest to it now.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from ..core.quoting import quoted
from ..core.view import Frame
from ..errors import SupervisorError
from ..interruption import dialog_opened
from .errors import NotInteractable, UnknownRef
from .port import PagePort
from .refs import prefix_of
from .snapshot import frame_of_ref, read_tree
from .state import refuse_while_dialog_open, state_of, top_frame

FRAME_LEVELS = 12
LOOKS = 3
LEAST_LIKENESS = 0.6


@dataclass(frozen=True, slots=True)
class Target:
    """An element that was found. ``x`` and ``y`` are CSS pixels in the viewport of the tab."""

    ref: str
    frame: Frame
    number: int
    what: str
    x: float = 0.0
    y: float = 0.0


async def call(
    port: PagePort, ref: str, function: str, *arguments: Any, timeout: float | None = None
) -> tuple[Target, Any]:
    """Call one of our functions about an element; its refusals become errors.

    Nothing is done to a page that a dialog holds, although it can still be read. Raises DialogOpened then.
    """
    view = port.snapshot()
    tab = view.selected_tab
    if tab is not None and any(dialog.tab_id == tab.tab_id for dialog in view.pending_dialogs):
        raise dialog_opened("the action", view.pending_dialogs, sent=False)
    frame, number = frame_of_ref(port, ref)
    await state_of(port).loading.over(frame.frame_id)
    result = await state_of(port).worlds.run(frame, function, number, *arguments, timeout=timeout)
    if not isinstance(result, dict):
        return Target(ref, frame, number, ref), result
    if result.get("why"):
        raise await refusal(port, frame, ref, result)
    return Target(ref, frame, number, named(ref, result.get("what"))), result


async def locate(
    port: PagePort, ref: str, *, enabled: bool = True, editable: bool = False, force: bool = False
) -> Target:
    """Where to point in order to act on an element.

    Raises: UnknownRef, NotInteractable, and what ``Supervisor.call`` raises.
    """
    refuse_while_dialog_open(port, f"the action on {ref}")
    wish = {"enabled": enabled, "editable": editable, "force": force}
    moved = False
    for _ in range(LOOKS):
        target, result = await call(port, ref, "locate", wish)
        mapped = await _outward(port, target.frame, float(result["x"]), float(result["y"]))
        if isinstance(mapped, Blocked):
            if moved or mapped.result.get("why") != "outside":
                raise await refusal(port, mapped.frame, ref, {**mapped.result, "what": result.get("what")})
            await state_of(port).worlds.run(mapped.frame, "ownerPoint", mapped.number, 0, 0, True)
        elif moved or not result.get("scrolled") or target.frame.frame_id == top_frame(port).frame_id:
            return Target(ref, target.frame, target.number, target.what, *mapped)
        # Frames of several processes were scrolled: each draws by itself, and the browser sends the pointer by what was
        # drawn. So let them all draw, and look where the element is then.
        moved = True
        await _drawn(port, target.frame)
    raise AssertionError("unreachable")


async def _drawn(port: PagePort, frame: Frame) -> None:
    """Let a frame and those around it draw what was scrolled."""
    state, frames = state_of(port), port.snapshot().frames
    chain = [frame]
    while (owner := state.reader.owner(chain[-1], frames)) is not None and len(chain) < FRAME_LEVELS:
        chain.append(owner[0])
    for _ in range(2):
        await asyncio.gather(*(state.worlds.run_if_there(one, "nextFrame") for one in chain))


@dataclass(frozen=True, slots=True)
class Blocked:
    """A frame through which a point cannot be reached: ``number`` is its iframe in ``frame``."""

    frame: Frame
    number: int
    result: Mapping[str, Any]


async def _outward(port: PagePort, frame: Frame, x: float, y: float) -> tuple[float, float] | Blocked:
    """From a frame's coordinates to the tab's, through the frames of other origins around it."""
    state = state_of(port)
    top = top_frame(port)
    for _ in range(FRAME_LEVELS):
        if frame.frame_id == top.frame_id:
            return x, y
        owner = state.reader.owner(frame, port.snapshot().frames)
        if owner is None:
            break
        parent, number = owner
        mapped = await state.worlds.run(parent, "ownerPoint", number, x, y, False)
        if mapped.get("why"):
            return Blocked(parent, number, mapped)
        frame, x, y = parent, float(mapped["x"]), float(mapped["y"])
    return Blocked(frame, 0, {"why": "gone"})


async def refusal(port: PagePort, frame: Frame, ref: str, result: Mapping[str, Any]) -> SupervisorError:
    """The error for what one of our functions refused."""
    why = str(result.get("why"))
    what = named(ref, result.get("what"))
    look = "Take a browser_snapshot to see what is there now."
    match why:
        case "gone":
            return await stale(port, ref)
        case "covered":
            by = result.get("by") or {}
            prefix = prefix_of(frame.short, frame.frame_id == top_frame(port).frame_id)
            cover = named(f"{prefix}{by['number']}" if by.get("number") else "", by)
            return NotInteractable(
                f"{what} is covered by {cover}.",
                "Close or accept what covers it, or scroll; browser_snapshot shows it.",
                reason="covered",
            )
        case "disabled":
            return NotInteractable(f"{what} is disabled.", "Do first what the page requires to enable it.", reason=why)
        case "hidden":
            return NotInteractable(f"{what} is not visible.", "Open what contains it first. " + look, reason=why)
        case "no_size":
            return NotInteractable(
                f"{what} has no size on screen.", "Act on something around it. " + look, reason="hidden"
            )
        case "outside":
            return NotInteractable(f"{what} cannot be scrolled into view.", look, reason=why)
        case "moving":
            return NotInteractable(
                f"{what} keeps moving.", "Wait until its animation is over, and try again.", reason=why
            )
        case "readonly":
            return NotInteractable(f"{what} is read-only.", "It takes no text.", reason=why)
        case "bad_value":
            return NotInteractable(
                f"{what} does not take this value.", f"It takes {result.get('expects')}.", reason="wrong_kind"
            )
        case "no_option":
            options = ", ".join(quoted(str(o)) for o in result.get("options", ()))
            return NotInteractable(
                f"{what} has no option {quoted(str(result.get('missing')))}.",
                f"Its options ({result.get('total')}): {options}.",
                reason="wrong_kind",
            )
        case "disabled_option":
            missing = quoted(str(result.get("missing")))
            return NotInteractable(
                f"The option {missing} of {what} is disabled.", "Choose another one.", reason="disabled"
            )
        case "one_only":
            return NotInteractable(f"{what} takes one option only.", "Give a single value.", reason="wrong_kind")
        case "refused":
            return NotInteractable(f"{what} did not let itself be dragged.", look, reason="wrong_kind")
    return NotInteractable(f"{what} is not of a kind for this.", look, reason="wrong_kind")


async def stale(port: PagePort, ref: str) -> UnknownRef:
    """The error of a ref whose element is gone, with the nearest element that is there now."""
    hint = "Take a browser_snapshot and use a ref in it."
    was = _remembered(port, ref)
    if was is None:
        return UnknownRef(f"{ref} is no longer on the page.", hint)
    role, name = was
    said = f"{ref} ({role}{' ' + quoted(name) if name else ''}) is no longer on the page"
    try:
        async with state_of(port).lock:
            _, _, tree = await read_tree(port, state_of(port))
    except SupervisorError:
        return UnknownRef(f"{said}.", hint)
    best, likeness = "", LEAST_LIKENESS
    for i, found in enumerate(tree.refs):
        if not found or tree.roles[i] != role:
            continue
        alike = 1.0 if tree.names[i] == name else SequenceMatcher(None, tree.names[i], name).ratio()
        if alike > likeness:
            best, likeness = f"{found} {role} {quoted(tree.names[i])}", alike
    if not best:
        return UnknownRef(f"{said}, and nothing like it is.", hint)
    return UnknownRef(f"{said}; nearest to it is now {best}.", "Use that ref if it is what you mean.")


def _remembered(port: PagePort, ref: str) -> tuple[str, str] | None:
    """Role and name that a kept snapshot shows for a ref."""
    shown = re.compile(rf'(?:^|[ (]){re.escape(ref)} ([\w-]+)(?: "((?:[^"\\]|\\.)*)")?')
    for kept in state_of(port).newest_first():
        for text in kept.lines.texts:
            found = shown.search(text) if ref in text else None
            if found is not None:
                return found[1], (found[2] or "").replace('\\"', '"').replace("\\\\", "\\")
    return None


def named(ref: str, what: Any) -> str:
    """An element in words: ``e5 button "Save"``."""
    if not isinstance(what, dict):
        return ref
    name = f" {quoted(str(what['name']))}" if what.get("name") else ""
    return f"{ref} {what.get('role', 'element')}{name}".strip()

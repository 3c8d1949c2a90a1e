"""The pointer: click, hover, drag, scroll.

Rules: input events go to the tab, in its coordinates, and reach every frame from there. A click is three events sent in
one go; a miss (something came between) is told, not hidden.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Input/#method-dispatchMouseEvent
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ...errors import InvalidArgument
from ..effects import Watch
from ..errors import NotInteractable
from ..keys import MODIFIERS
from ..port import PagePort
from ..state import state_of, top_frame
from ..targets import Target, call, locate, named
from .result import Done

Button = Literal["left", "right", "middle"]
BUTTONS: Mapping[str, int] = {"left": 1, "right": 2, "middle": 4}
DRAG_STEPS = 8
PAGE_PART = 0.85
"""Part of the visible height that a scroll by pages moves."""


async def click(
    port: PagePort,
    ref: str,
    *,
    button: Button = "left",
    count: int = 1,
    modifiers: Sequence[str] = (),
    force: bool = False,
) -> Done:
    """Click an element; ``count`` 2 is a double click. ``force``: do not mind what covers it.

    Raises: InvalidArgument, UnknownRef, NotInteractable, and what ``Supervisor.call`` raises.
    """
    if button not in BUTTONS:
        raise InvalidArgument(f"There is no mouse button {str(button)[:20]!r}.", "Buttons: left, right, middle.")
    if not 1 <= count <= 3:
        raise InvalidArgument("A click is single, double or triple.", "count is 1, 2 or 3.")
    flags = modifier_flags(modifiers)
    target = await locate(port, ref, force=force)
    worlds = state_of(port).worlds
    landed: list[Any] = []

    async def act() -> None:
        events: list[dict[str, Any]] = [{"type": "mouseMoved", "button": "none"}]
        for number in range(1, count + 1):
            pressed = {"button": button, "clickCount": number}
            events.append({"type": "mousePressed", "buttons": BUTTONS[button], **pressed})
            events.append({"type": "mouseReleased", "buttons": 0, **pressed})
        await asyncio.gather(*(mouse(port, target.x, target.y, flags, event) for event in events))

    async def after() -> None:
        landed.append(await worlds.run_if_there(target.frame, "clickLanded", target.number))

    effects = await Watch(port, target.frame.frame_id).perform(act, after)
    verb = {1: "clicked", 2: "double-clicked", 3: "triple-clicked"}[count]
    said = f"{verb}{'' if button == 'left' else f' ({button} button)'} {target.what}"
    other = landed[0].get("landed") if landed and isinstance(landed[0], dict) else None
    if other:
        said += f"; something moved under the pointer: the click landed on {named('', other)}"
    return Done(said, effects)


async def hover(port: PagePort, ref: str) -> Done:
    """Move the pointer onto an element, and let the page react: one frame."""
    target = await locate(port, ref, enabled=False)
    worlds = state_of(port).worlds

    async def act() -> None:
        await mouse(port, target.x, target.y, 0, {"type": "mouseMoved", "button": "none"})

    async def settle() -> None:
        await worlds.run_if_there(target.frame, "nextFrame")

    effects = await Watch(port, target.frame.frame_id).perform(act, settle)
    return Done(f"the pointer is on {target.what}", effects)


async def drag(port: PagePort, ref: str, onto: str) -> Done:
    """Drag an element onto another: with the events of HTML drag and drop where it takes part in that, else by pointer.

    Raises: NotInteractable (also where both are needed in one document and are not), UnknownRef.
    """
    source, kind = await call(port, ref, "isDraggable")
    destination, _ = await call(port, onto, "isDraggable")
    if kind.get("draggable"):
        if source.frame.frame_id != destination.frame.frame_id:
            raise NotInteractable(
                f"{ref} cannot be dragged onto {onto}: they are in documents of different origins.",
                "Drag within one document, or use what the page offers instead.",
                reason="wrong_kind",
            )
        return await _drag_html(port, source, destination)
    start = await locate(port, ref)
    end = await locate(port, onto, enabled=False, force=True)
    start = await locate(port, ref)  # looking for the end may have scrolled

    async def act() -> None:
        await mouse(port, start.x, start.y, 0, {"type": "mouseMoved", "button": "none"})
        await mouse(
            port, start.x, start.y, 0, {"type": "mousePressed", "button": "left", "buttons": 1, "clickCount": 1}
        )
        for step in range(1, DRAG_STEPS + 1):
            part = step / DRAG_STEPS
            x, y = start.x + (end.x - start.x) * part, start.y + (end.y - start.y) * part
            await mouse(port, x, y, 0, {"type": "mouseMoved", "button": "left", "buttons": 1})
        await mouse(port, end.x, end.y, 0, {"type": "mouseReleased", "button": "left", "buttons": 0, "clickCount": 1})

    effects = await Watch(port, start.frame.frame_id).perform(act)
    return Done(f"dragged {start.what} onto {end.what}", effects)


async def _drag_html(port: PagePort, source: Target, destination: Target) -> Done:
    worlds = state_of(port).worlds
    answers: list[Any] = []

    async def act() -> None:
        answers.append(await worlds.run(source.frame, "dragAndDrop", source.number, destination.number))

    effects = await Watch(port, source.frame.frame_id).perform(act)
    answer = answers[0] if answers else {}
    if answer.get("why"):
        raise NotInteractable(
            f"{source.ref} did not let itself be dragged.", "Take a browser_snapshot.", reason="wrong_kind"
        )
    onto = answer.get("onto", {})
    said = f"dragged {source.ref} onto {destination.ref} {onto.get('role', '')}".rstrip()
    return Done(said if answer.get("accepted", True) else f"{said}, which did not accept it", effects)


async def scroll(
    port: PagePort,
    ref: str | None = None,
    *,
    to: Literal["view", "top", "bottom"] | None = None,
    pages: float = 0.0,
    pixels: int = 0,
    sideways: int = 0,
) -> Done:
    """Scroll the page, or the scrollable part that an element is or stands in.

    ``to`` ``view`` brings the element into view, ``top`` and ``bottom`` go to an edge; else by ``pages`` of what is
    visible or by ``pixels`` down (negative: up) and ``sideways``. Where no part scrolls, the wheel is turned at the
    element, for maps and the like.
    """
    if to == "view" and ref is None:
        raise InvalidArgument("What is to be brought into view?", "Give its ref.")
    if to is None and not (pages or pixels or sideways):
        to, pages = ("view", 0.0) if ref is not None else (None, PAGE_PART)
    down = pixels
    if pages:
        down = round(pages * await _visible_height(port))
    state = state_of(port)
    frame = top_frame(port)
    if ref is None:
        result = await state.worlds.run(frame, "scrollBy", 0, sideways, down, to)
        what = "the page"
    else:
        target, result = await call(port, ref, "scrollBy", sideways, down, to)
        frame, what = target.frame, target.what
        if to == "view":
            return Done(f"{what} is in view")
    moved = result.get("moved", [0, 0])
    if not any(moved) and to is None:
        if ref is not None:
            at = await locate(port, ref, enabled=False)
            wheel = {"type": "mouseWheel", "deltaX": sideways, "deltaY": down}
            await mouse(port, at.x, at.y, 0, wheel)
            return Done(f"turned the wheel at {what}; nothing there scrolls by itself")
        return Done("the page does not scroll any further that way")
    await state.worlds.run_if_there(frame, "nextFrame")
    scrolled = "the page" if result.get("page") else f"within {what}"
    x, y = result["position"]
    width, height, seen_width, seen_height = result["size"]
    across = f", {x} of {width - seen_width} px across" if moved[0] else ""
    return Done(f"scrolled {scrolled}: now at {y} of {max(0, height - seen_height)} px{across}")


async def _visible_height(port: PagePort) -> float:
    metrics = await port.call("Page.getLayoutMetrics")
    visible = metrics.get("cssVisualViewport", {})
    return float(visible.get("clientHeight", 600))


async def mouse(port: PagePort, x: float, y: float, flags: int, event: Mapping[str, Any]) -> None:
    """One mouse event at a point of the tab."""
    await port.call("Input.dispatchMouseEvent", {"x": x, "y": y, "modifiers": flags, **event})


def modifier_flags(names: Sequence[str]) -> int:
    flags = 0
    for name in names:
        flag = MODIFIERS.get(name.lower())
        if flag is None:
            raise InvalidArgument(f"There is no modifier {name[:20]!r}.", "Modifiers: Alt, Control, Meta, Shift.")
        flags |= flag
    return flags

"""Pictures of a page: what is visible, an element, the whole page; and its PDF.

Rules: pictures are scaled down to fit a budget of pixels, and say by how much. While a native dialog holds the page the
picture comes from the screencast, which goes on then; it may be a moment old.

Sources: https://chromedevtools.github.io/devtools-protocol/tot/Page/#method-captureScreenshot,
.../Page/#method-startScreencast, .../Page/#method-printToPDF
"""

import asyncio
import base64
from dataclasses import dataclass
from typing import Any, Literal

from ..core import fields
from ..core.inputs import Event
from ..errors import CallInterrupted, CallTimeout, InvalidArgument
from .port import PagePort
from .state import state_of, top_frame
from .targets import Target, call

LONGEST_SIDE = 8000
"""Pixels; a longer page is cut there."""
MAX_PIXELS = 1_150_000
"""What models that look at pictures keep of them, roughly; more would be scaled down by them."""
SHOT_TIMEOUT_S = 15.0
SCREENCAST_WAIT_S = 3.0
PDF_PIECE = 1 << 20
PDF_CAP = 100 * 1024 * 1024
Format = Literal["png", "jpeg", "webp"]


@dataclass(frozen=True, slots=True)
class Picture:
    """``width`` and ``height`` are those of the picture, in its pixels; ``scale``: picture pixels per CSS pixel."""

    data: bytes
    mime: str
    width: int
    height: int
    scale: float
    note: str = ""


async def screenshot(
    port: PagePort,
    *,
    ref: str | None = None,
    full_page: bool = False,
    format: Format = "png",
    quality: int = 80,
    max_pixels: int = MAX_PIXELS,
) -> Picture:
    """A picture of what is visible, of an element (``ref``) or of the whole page.

    Raises: InvalidArgument, UnknownRef, NotInteractable (an element without size), and what ``Supervisor.call`` raises.
    """
    if format not in ("png", "jpeg", "webp"):
        raise InvalidArgument(f"There is no format {str(format)[:20]!r}.", "Formats: png, jpeg, webp.")
    if ref is not None and full_page:
        raise InvalidArgument("A picture is of an element or of the whole page.", "Leave ref or full_page out.")
    top = top_frame(port)
    try:
        area, note = await _area(port, ref, full_page)
        width, height = area["width"], area["height"]
        scale = min(1.0, (max_pixels / max(1.0, width * height)) ** 0.5)
        params: dict[str, Any] = {
            "format": format,
            "clip": {**area, "scale": scale},
            "captureBeyondViewport": full_page or ref is not None,
            "optimizeForSpeed": format == "png",
        }
        if format != "png":
            params["quality"] = min(max(quality, 1), 100)
        shot = await port.call("Page.captureScreenshot", params, session_id=top.session_id, timeout=SHOT_TIMEOUT_S)
    except CallInterrupted:
        return await _from_screencast(port, format)
    if scale < 1:
        note = f"{note}; scaled to {scale:.0%}".removeprefix("; ")
    size = (round(width * scale), round(height * scale))
    return Picture(base64.b64decode(fields.text(shot, "data")), f"image/{format}", *size, scale, note)


async def _area(port: PagePort, ref: str | None, full_page: bool) -> tuple[dict[str, float], str]:
    """What to show, in CSS pixels of the page."""
    top = top_frame(port)
    metrics = await port.call("Page.getLayoutMetrics", session_id=top.session_id)
    visible = fields.mapping(metrics, "cssVisualViewport")
    left, upper = float(visible.get("pageX", 0)), float(visible.get("pageY", 0))
    if ref is not None:
        target, box = await call(port, ref, "boxOf")
        x, y = await _corner(port, target, float(box["x"]), float(box["y"]))
        metrics = await port.call("Page.getLayoutMetrics", session_id=top.session_id)  # it may have been scrolled
        visible = fields.mapping(metrics, "cssVisualViewport")
        left, upper = float(visible.get("pageX", 0)), float(visible.get("pageY", 0))
        area = {"x": x + left, "y": y + upper, "width": float(box["width"]), "height": float(box["height"])}
        return _capped(area)
    if full_page:
        content = fields.mapping(metrics, "cssContentSize")
        return _capped({"x": 0.0, "y": 0.0, "width": float(content["width"]), "height": float(content["height"])})
    width, height = float(visible.get("clientWidth", 800)), float(visible.get("clientHeight", 600))
    return {"x": left, "y": upper, "width": max(1.0, width), "height": max(1.0, height)}, ""


def _capped(area: dict[str, float]) -> tuple[dict[str, float], str]:
    width, height = min(area["width"], LONGEST_SIDE), min(area["height"], LONGEST_SIDE)
    note = ""
    if width < area["width"] or height < area["height"]:
        note = f"cut at {LONGEST_SIDE:,} px of {area['width']:,.0f} x {area['height']:,.0f}"
    return {**area, "width": max(1.0, width), "height": max(1.0, height)}, note


async def _corner(port: PagePort, target: Target, x: float, y: float) -> tuple[float, float]:
    """From a frame's coordinates to the tab's viewport."""
    state, frame, top = state_of(port), target.frame, top_frame(port)
    while frame.frame_id != top.frame_id:
        owner = state.reader.owner(frame, port.snapshot().frames)
        if owner is None:
            break
        parent, number = owner
        mapped = await state.worlds.run(parent, "ownerCorner", number, x, y)
        frame, x, y = parent, float(mapped.get("x", x)), float(mapped.get("y", y))
    return x, y


async def _from_screencast(port: PagePort, format: Format) -> Picture:
    """One frame of the screencast. Raises CallTimeout where none comes."""
    session = top_frame(port).session_id
    shown: asyncio.Future[Event] = asyncio.get_running_loop().create_future()

    def hear(event: Event) -> None:
        if event.method == "Page.screencastFrame" and event.session_id == session and not shown.done():
            shown.set_result(event)

    kind = "png" if format == "png" else "jpeg"
    stop = port.listen(hear)
    try:
        await port.call("Page.startScreencast", {"format": kind, "everyNthFrame": 1}, session_id=session)
        event = await asyncio.wait_for(shown, SCREENCAST_WAIT_S)
    except TimeoutError:
        raise CallTimeout(
            "The page is held by a dialog and shows no picture.", "Answer the dialog with browser_dialog first."
        ) from None
    finally:
        stop()
        await port.call("Page.stopScreencast", session_id=session)
    metadata = fields.mapping(event.params, "metadata")
    width, height = round(float(metadata.get("deviceWidth", 0))), round(float(metadata.get("deviceHeight", 0)))
    data = base64.b64decode(fields.text(event.params, "data"))
    return Picture(data, f"image/{kind}", width, height, 1.0, "a dialog holds the page: the last picture of it")


async def pdf(
    port: PagePort, *, landscape: bool = False, background: bool = True, pages: str = "", scale: float = 1.0
) -> bytes:
    """The page as PDF; ``pages`` like ``1-3,5``. Fetched in pieces.

    Raises: InvalidArgument, ProtocolError (a range that the page has not), and what ``Supervisor.call`` raises.
    """
    if not 0.1 <= scale <= 2:
        raise InvalidArgument("scale is out of range.", "Between 0.1 and 2.")
    session = top_frame(port).session_id
    params = {
        "landscape": landscape,
        "printBackground": background,
        "pageRanges": pages,
        "scale": scale,
        "transferMode": "ReturnAsStream",
        "preferCSSPageSize": True,
    }
    printed = await port.call("Page.printToPDF", params, session_id=session, timeout=60.0)
    stream = fields.text(printed, "stream")
    parts: list[bytes] = []
    size = 0
    try:
        while True:
            piece = await port.call("IO.read", {"handle": stream, "size": PDF_PIECE}, session_id=session)
            data = fields.text(piece, "data")
            parts.append(base64.b64decode(data) if fields.flag(piece, "base64Encoded") else data.encode("latin-1"))
            size += len(parts[-1])
            if size > PDF_CAP:
                raise InvalidArgument(f"The PDF is larger than {PDF_CAP >> 20} MB.", "Print fewer pages with pages.")
            if fields.flag(piece, "eof"):
                return b"".join(parts)
    finally:
        await port.call("IO.close", {"handle": stream}, session_id=session)

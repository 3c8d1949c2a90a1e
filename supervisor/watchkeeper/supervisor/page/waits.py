"""Waiting for what a page does: a text, an element, an address, silence on the network, or time.

Rules: the page itself looks, whenever it changes; nobody polls from outside. A wait that is in vain says so with what
was there instead, and never longer than it was given. A document that is replaced meanwhile is waited on again.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.quoting import quoted
from ..core.view import Frame, View
from ..errors import CallInterrupted, CallTimeout, EvaluationFailed, InvalidArgument, SupervisorError
from .network import network_log
from .port import PagePort
from .snapshot import frame_of_ref
from .state import refuse_while_dialog_open, state_of

LONGEST_S = 300.0
QUIET_S = 0.5
SLICE_S = 10.0
"""Longest single question to a page: a page that is replaced without a word is asked again after it."""


@dataclass(frozen=True, slots=True)
class Waited:
    """``met``: it came about; ``seconds`` it took; ``said``: the same in words."""

    met: bool
    seconds: float
    said: str


async def wait_for(
    port: PagePort,
    *,
    text: str | None = None,
    gone: str | None = None,
    ref: str | None = None,
    ref_gone: str | None = None,
    url: str | None = None,
    quiet: bool = False,
    seconds: float | None = None,
    timeout: float = 10.0,
) -> Waited:
    """Wait for one thing: ``text`` in any frame, a text ``gone`` from all, an element (``ref``) shown or gone, an
    address (``url``: a part of it, or with ``*`` a pattern), the network ``quiet``, or just ``seconds``.

    Raises: InvalidArgument, UnknownRef, DialogOpened, and what ``Supervisor.call`` raises.
    """
    wishes = [text, gone, ref, ref_gone, url, quiet or None, seconds]
    if sum(wish is not None for wish in wishes) != 1:
        raise InvalidArgument(
            "Wait for one thing at a time.", "Give one of text, gone, ref, ref_gone, url, quiet, seconds."
        )
    timeout = min(max(timeout, 0.0), LONGEST_S)
    clock = asyncio.get_running_loop().time
    began = clock()
    if seconds is not None:
        await asyncio.sleep(min(max(seconds, 0.0), LONGEST_S))
        return Waited(True, clock() - began, f"waited {seconds:g} s")
    refuse_while_dialog_open(port, "the wait")
    if text is not None or gone is not None:
        wanted = text if text is not None else gone or ""
        met = await _text(port, wanted, text is not None, timeout)
        what = f"the text {quoted(wanted[:100])} is {'there' if met == (text is not None) else 'not there'}"
    elif ref is not None or ref_gone is not None:
        name = ref or ref_gone or ""
        frame, number = frame_of_ref(port, name)
        met = bool(await _ask(port, frame, timeout, "untilElement", number, ref is not None))
        what = f"{name} is {'shown' if met == (ref is not None) else 'not shown'}"
    elif url is not None:
        met = await _url(port, url, timeout)
        what = f"the address is {quoted(_address(port.snapshot())[:300])}"
    else:
        met, busy = await network_log(port).until_quiet(QUIET_S, timeout)
        what = "the network is quiet" if met else f"{busy} requests are still under way"
    took = clock() - began
    return Waited(met, took, what if met else f"not within {timeout:g} s: {what}")


async def _text(port: PagePort, wanted: str, present: bool, timeout: float) -> bool:
    """In frames of other origins each script looks for itself: the first that finds a text is enough."""
    if not wanted.strip():
        raise InvalidArgument("Which text?", "Give some characters of it.")
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    while True:
        left = max(0.0, deadline - clock())
        frames = _readers(port)
        asked = [asyncio.ensure_future(_ask(port, f, min(left, SLICE_S), "untilText", wanted, present)) for f in frames]
        try:
            if present:
                found = await _first_true(asked)
            else:
                found = all([bool(answer) for answer in await asyncio.gather(*asked)])
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        if found or clock() >= deadline:
            return found


async def _first_true(tasks: Sequence[asyncio.Future[Any]]) -> bool:
    for answer in asyncio.as_completed(tasks):
        if await answer:
            return True
    return False


def _readers(port: PagePort) -> list[Frame]:
    """The frames whose scripts together see everything: those of another origin or process than their parent's."""
    frames = port.snapshot().frames
    origins = {frame.frame_id: (frame.origin, frame.session_id) for frame in frames}
    return [
        f for f in frames if f.parent_frame_id is None or origins.get(f.parent_frame_id) != (f.origin, f.session_id)
    ]


async def _ask(port: PagePort, frame: Frame, timeout: float, function: str, *arguments: Any) -> Any:
    """A promise of a frame's script; where its document is replaced the new one is asked for the rest of the time."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    while True:
        left = deadline - clock()
        try:
            return await state_of(port).worlds.run(
                frame, function, *arguments, max(left, 0.0), timeout=max(left, 0.0) + 2
            )
        except CallInterrupted:
            raise
        except CallTimeout:
            return False  # a page that waits for a response, or is busy: not met
        except (EvaluationFailed, SupervisorError):
            if left <= 0 or all(f.frame_id != frame.frame_id for f in port.snapshot().frames):
                return False
            await asyncio.sleep(0.05)  # the frame is between two documents


async def _url(port: PagePort, wanted: str, timeout: float) -> bool:
    pattern = re.compile(".*".join(map(re.escape, wanted.split("*"))), re.DOTALL) if "*" in wanted else None

    def reached(view: View) -> bool | None:
        address = _address(view)
        return True if (pattern.fullmatch(address) if pattern else wanted in address) else None

    try:
        return await port.wait_for(reached, timeout)
    except CallTimeout:
        return False


def _address(view: View) -> str:
    return view.frames[0].url if view.frames else ""

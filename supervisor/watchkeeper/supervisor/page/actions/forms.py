"""Forms: select, check, upload.

Rules: a choice that is made already is not made again. Files are given to the browser by path; which folders they may
come from is the caller's to check. Where a button opens the file chooser, the chooser is intercepted, never shown.

Source: https://chromedevtools.github.io/devtools-protocol/tot/DOM/#method-setFileInputFiles,
.../Page/#method-setInterceptFileChooserDialog
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core import fields
from ...core.inputs import Event
from ...core.quoting import quoted
from ...errors import InvalidArgument
from ..effects import Effects, Watch
from ..errors import NotInteractable
from ..port import PagePort
from ..state import state_of
from ..targets import call
from .pointer import click
from .result import Done

CHOOSER_WAIT_S = 1.0
"""After the click was answered."""


async def select(port: PagePort, ref: str, values: Sequence[str]) -> Done:
    """Choose options of a ``<select>`` by value or label; several where it takes several, none empties it.

    Raises: UnknownRef, NotInteractable (with the options there are).
    """
    chosen: list[Any] = []
    target, _ = await call(port, ref, "describeNumber")

    async def act() -> None:
        chosen.append(await call(port, ref, "choose", list(values)))

    effects = await Watch(port, target.frame.frame_id).perform(act)
    if not chosen:
        return Done(f"chose in {ref}", effects)
    target, result = chosen[0]
    listed = ", ".join(quoted(str(label)) for label in result.get("chosen", ())) or "nothing"
    return Done(f"{target.what} has {listed} selected{' already' if result.get('same') else ''}", effects)


async def check(port: PagePort, ref: str, checked: bool = True) -> Done:
    """Check or uncheck a checkbox, switch or radio button. Raises UnknownRef, NotInteractable."""
    target, before = await call(port, ref, "checkedState")
    word = "checked" if checked else "unchecked"
    if before["state"] is checked:
        return Done(f"{target.what} is {word} already")
    if before.get("radio") and not checked:
        raise NotInteractable(
            f"{target.what} cannot be unchecked by itself.", "Check another one of its group.", reason="wrong_kind"
        )
    done = await click(port, ref)
    if done.effects.dialogs or done.effects.arrivals:
        return Done(f"clicked {target.what}", done.effects)
    _, now = await call(port, ref, "checkedState")
    if now["state"] is not checked:
        raise NotInteractable(
            f"{target.what} was clicked and is not {word}.", "The page may forbid it; browser_snapshot shows why.",
            reason="wrong_kind",
        )  # fmt: skip
    return Done(f"{target.what} is {word} now", done.effects)


async def upload(port: PagePort, ref: str, paths: Sequence[str]) -> Done:
    """Give files to a file input, or to the chooser that clicking an element opens. No path empties the input.

    Raises: InvalidArgument (a path that is no file), UnknownRef, NotInteractable.
    """
    missing = [path for path in paths if not await asyncio.to_thread(Path(path).is_file)]
    if missing:
        raise InvalidArgument(f"There is no file {missing[0][:200]!r}.", "Give absolute paths of files that exist.")
    target, described = await call(port, ref, "describeNumber")
    names = ", ".join(quoted(Path(path).name) for path in paths) or "no file"
    if described["what"]["role"] == "file":
        (handle,) = await state_of(port).worlds.handles(target.frame, "elementsOf", [target.number])

        async def act() -> None:
            files = {"files": list(paths), "objectId": handle}
            await port.call("DOM.setFileInputFiles", files, session_id=target.frame.session_id)

        return Done(f"{ref} holds {names}", await Watch(port, target.frame.frame_id).perform(act))
    return Done(f"chose {names} in the file chooser that {ref} opened", await _through_chooser(port, ref, paths))


async def _through_chooser(port: PagePort, ref: str, paths: Sequence[str]) -> Effects:
    opened: asyncio.Future[Event] = asyncio.get_running_loop().create_future()

    def hear(event: Event) -> None:
        if event.method == "Page.fileChooserOpened" and not opened.done():
            opened.set_result(event)

    sessions = {frame.session_id for frame in port.snapshot().frames}
    await _intercept(port, sessions, True)
    stop = port.listen(hear)
    try:
        done = await click(port, ref)
        try:
            event = await asyncio.wait_for(opened, CHOOSER_WAIT_S)
        except TimeoutError:
            raise NotInteractable(
                f"Clicking {ref} opened no file chooser.",
                "Give the ref of the file input, or of the button that opens the chooser.",
                reason="wrong_kind",
            ) from None
        if len(paths) > 1 and fields.text(event.params, "mode") != "selectMultiple":
            raise InvalidArgument("The file chooser takes one file only.", "Give a single path.")
        files = {"files": list(paths), "backendNodeId": fields.integer(event.params, "backendNodeId")}
        await port.call("DOM.setFileInputFiles", files, session_id=event.session_id)
        return done.effects
    finally:
        stop()
        await _intercept(port, sessions, False)


async def _intercept(port: PagePort, sessions: set[str], enabled: bool) -> None:
    calls = (
        port.call("Page.setInterceptFileChooserDialog", {"enabled": enabled}, session_id=session)
        for session in sessions
    )
    await asyncio.gather(*calls, return_exceptions=True)

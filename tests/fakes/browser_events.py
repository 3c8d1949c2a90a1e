"""Events as a browser sends them, for tests of the core: short to write, complete in form."""

from collections.abc import Iterable
from typing import Any

from watchkeeper.supervisor.core.commands import Command
from watchkeeper.supervisor.core.inputs import Event, Input
from watchkeeper.supervisor.core.reducer import step
from watchkeeper.supervisor.core.state import BrowserState, Options

PAGE, SESSION = "PAGE", "S-PAGE"


def attached(
    target_id: str = PAGE, session_id: str = SESSION, *, parent: str | None = None, kind: str = "page", **info: Any
) -> Event:
    described = {"targetId": target_id, "type": kind, "url": "about:blank", "title": "", **info}
    return Event(parent, "Target.attachedToTarget", {"sessionId": session_id, "targetInfo": described})


def detached(session_id: str, *, parent: str | None = None) -> Event:
    return Event(parent, "Target.detachedFromTarget", {"sessionId": session_id})


def frame_attached(frame_id: str, parent_id: str = PAGE, session_id: str = SESSION) -> Event:
    return Event(session_id, "Page.frameAttached", {"frameId": frame_id, "parentFrameId": parent_id})


def frame_detached(frame_id: str, reason: str = "remove", session_id: str = SESSION) -> Event:
    return Event(session_id, "Page.frameDetached", {"frameId": frame_id, "reason": reason})


def navigated(
    frame_id: str = PAGE,
    url: str = "http://a.test/",
    loader: str = "L1",
    session_id: str = SESSION,
    kind: str = "Navigation",
    **more: Any,
) -> Event:
    frame = {"id": frame_id, "url": url, "loaderId": loader, "securityOrigin": "http://a.test", **more}
    return Event(session_id, "Page.frameNavigated", {"frame": frame, "type": kind})


def context(
    number: int, frame_id: str = PAGE, session_id: str = SESSION, *, is_default: bool = True, unique: str = ""
) -> Event:
    described = {
        "id": number,
        "uniqueId": unique or f"{session_id}-{number}",
        "name": "",
        "auxData": {"frameId": frame_id, "isDefault": is_default},
    }
    return Event(session_id, "Runtime.executionContextCreated", {"context": described})


def dialog_opening(kind: str = "confirm", message: str = "Sure?", session_id: str = SESSION, **more: Any) -> Event:
    params = {"type": kind, "message": message, "url": "http://a.test/", "defaultPrompt": "", **more}
    return Event(session_id, "Page.javascriptDialogOpening", params)


def dialog_closed(result: bool, text: str = "", session_id: str = SESSION, **more: Any) -> Event:
    return Event(session_id, "Page.javascriptDialogClosed", {"result": result, "userInput": text, **more})


def after(
    *happened: Input, state: BrowserState | None = None, now: float = 1000.0, options: Options | None = None
) -> BrowserState:
    """The state after these inputs, one second apart, on a page that is attached unless a state is given."""
    return run(happened, state=state, now=now, options=options)[0]


def run(
    happened: Iterable[Input],
    *,
    state: BrowserState | None = None,
    now: float = 1000.0,
    options: Options | None = None,
) -> tuple[BrowserState, list[Command]]:
    """The same, with the commands that the inputs led to."""
    if state is None:
        state, _ = step(BrowserState(options=options or Options()), attached(), now)
        state, _ = step(state, navigated(), now)
    sent: list[Command] = []
    for moment, item in enumerate(happened):
        state, commands = step(state, item, now + moment)
        sent.extend(commands)
    return state, sent

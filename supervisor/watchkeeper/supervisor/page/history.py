"""Back, forward, reload.

Rules: says where one arrived, or that there is nowhere to go; waits for the page like an action.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Page/#method-getNavigationHistory
"""

from typing import Any, Literal

from ..core import fields
from .actions.result import Done
from .effects import Watch
from .errors import PageError
from .port import PagePort
from .state import top_frame


async def go(port: PagePort, where: Literal["back", "forward", "reload"], *, past_cache: bool = False) -> Done:
    """Move in the history of the tab, or load the page again (``past_cache``: without what is cached).

    Raises: PageError (the end of the history), and what ``Supervisor.call`` raises.
    """
    frame = top_frame(port)
    method = "Page.reload"
    params: dict[str, Any] = {"ignoreCache": past_cache}
    if where != "reload":
        history = await port.call("Page.getNavigationHistory", session_id=frame.session_id)
        entries = fields.items(history, "entries")
        index = fields.integer(history, "currentIndex") + (1 if where == "forward" else -1)
        if not 0 <= index < len(entries):
            raise PageError(f"There is no page to go {where} to.", "browser_navigate opens an address.")
        method, params = "Page.navigateToHistoryEntry", {"entryId": fields.integer(entries[index], "id")}
    watch = Watch(port, frame.frame_id)
    watch.expect(frame.frame_id)

    async def act() -> None:
        await port.call(method, params, session_id=frame.session_id)

    async def after() -> Any:
        return None

    effects = await watch.perform(act, after)
    said = {"back": "went back", "forward": "went forward", "reload": "loaded the page again"}[where]
    return Done(said, effects)

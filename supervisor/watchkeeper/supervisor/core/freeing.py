"""Native dialogs that the browser takes no answer for, and how a tab is freed of them.

Rules: such a dialog is ended by a navigation that leaves the page where it is; the dialog returns its default, and
scripts keep their state. What was measured on Chromium 156:

- A dialog of a page that is being left (``pagehide``, ``visibilitychange``) is refused with "Not attached to an active
  page", and so is nearly every other command. A navigation to an unknown scheme closes it and is aborted; the page that
  was on its way then arrives.
- Of two dialogs in one tab, the first is closed by the browser when the second opens, and the second is refused with
  "No dialog is showing". A navigation to another fragment of the same address closes it; no ``beforeunload`` is asked.
- A dialog of an out-of-process iframe that is removed crashes the whole browser with the next command that touches
  dialogs of the tab, also with closing it, unless ``Page`` is disabled first and then a navigation follows.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Page/#method-handleJavaScriptDialog
"""

import json

from .commands import Command, FreeTab, Send

NOWHERE = "watchkeeper:nowhere"
"""An address of a scheme that nobody handles: navigating to it begins, and is aborted."""
_INACTIVE = "active page"


def past(url: str) -> str:
    """The same document under another fragment."""
    return f"{url}{'&' if '#' in url else '#'}watchkeeper"


def after_refusal(session_id: str, dialog_id: str, url: str, refusal: str) -> tuple[Command, ...]:
    """Free a tab of a dialog whose answer was refused with this message; ``url`` is of the tab's top frame."""
    if _INACTIVE in refusal:
        return (Send(session_id, "Page.navigate", {"url": NOWHERE}, FreeTab(session_id, dialog_id)),)
    return (Send(session_id, "Page.navigate", {"url": past(url)}, FreeTab(session_id, dialog_id, url)),)


def after_removal(session_id: str, url: str, prepare: tuple[Command, ...]) -> tuple[Command, ...]:
    """Free a tab of what a removed frame's dialog leaves behind. ``prepare`` enables ``Page`` again."""
    return (
        Send(session_id, "Page.disable"),
        Send(session_id, "Page.navigate", {"url": past(url)}, FreeTab(session_id, restore=url)),
        *prepare,
    )


def restored(tag: FreeTab) -> tuple[Command, ...]:
    """Put the address back that the tab had before it was freed."""
    if not tag.restore:
        return ()
    expression = f"history.replaceState(history.state, '', {json.dumps(tag.restore)})"
    return (Send(tag.session_id, "Runtime.evaluate", {"expression": expression}),)

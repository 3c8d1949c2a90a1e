"""What an agent sees of a page and does to it.

    shown = await take_snapshot(supervisor)
    done = await click(supervisor, "e5")
    shown = await take_snapshot(supervisor, since=shown.snapshot_id)

Rules: speaks to the browser through a ``PagePort`` only, which ``Supervisor`` is. Everything takes it as its first
argument; what has to be remembered between calls is kept beside it.
"""

from .actions import Done, check, click, drag, fill, hover, press, scroll, select, type_text, upload
from .capture import Picture, pdf, screenshot
from .downloads import Download, Downloads, downloads_of
from .effects import Effects
from .emulation import emulate
from .errors import NotInteractable, PageError, PageLoading, UnknownCursor, UnknownRef
from .history import go
from .network import NetworkLog, Request, network_log
from .port import PagePort
from .scripting import evaluate_on
from .snapshot import PageSnapshot, take_snapshot
from .storage import clear_cookies, cookies, load_state, save_state, set_cookies
from .waits import Waited, wait_for

__all__ = [
    "Done",
    "Download",
    "Downloads",
    "Effects",
    "NetworkLog",
    "NotInteractable",
    "PageError",
    "PageLoading",
    "PagePort",
    "PageSnapshot",
    "Picture",
    "Request",
    "UnknownCursor",
    "UnknownRef",
    "Waited",
    "check",
    "clear_cookies",
    "click",
    "cookies",
    "downloads_of",
    "drag",
    "emulate",
    "evaluate_on",
    "fill",
    "go",
    "hover",
    "load_state",
    "network_log",
    "pdf",
    "press",
    "save_state",
    "screenshot",
    "scroll",
    "select",
    "set_cookies",
    "take_snapshot",
    "type_text",
    "upload",
    "wait_for",
]

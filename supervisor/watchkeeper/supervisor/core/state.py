"""All that is known of one task's part of a browser.

Rules: frozen; each noun owns its part; the only writer is ``reducer.step``. The state is published by swapping the
whole, so any thread may read it.
"""

from dataclasses import dataclass, field
from typing import Literal

from ..bridge import BridgeKind
from .commands import Command
from .console import Console
from .dialogs import DialogPolicy, Dialogs
from .frames import Frames
from .held import Held
from .sessions import Sessions
from .targets import Targets


@dataclass(frozen=True, slots=True)
class Options:
    """What the person chose for this task. ``dialog_timeout_s``: after it the watchdog dismisses."""

    dialog_policy: DialogPolicy = "must_respond"
    dialog_timeout_s: float = 300.0
    bridge: BridgeKind = "never"
    nonce: str = ""
    """What the XHR bridge's script proves itself with; letters and digits."""


@dataclass(frozen=True, slots=True)
class Connection:
    """``generation`` counts connections: ids of an older generation mean nothing any more."""

    phase: Literal["up", "lost"] = "up"
    generation: int = 1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BrowserState:
    options: Options = field(default_factory=Options)
    connection: Connection = field(default_factory=Connection)
    targets: Targets = field(default_factory=Targets)
    sessions: Sessions = field(default_factory=Sessions)
    frames: Frames = field(default_factory=Frames)
    dialogs: Dialogs = field(default_factory=Dialogs)
    held: Held = field(default_factory=Held)
    console: Console = field(default_factory=Console)
    backend_dismisses: bool = False
    """Somebody between us and the pages closes native dialogs by machine, before anybody can answer them."""


Step = tuple[BrowserState, tuple[Command, ...]]
"""The state after something happened, and what to ask of the browser."""
NOTHING: tuple[Command, ...] = ()

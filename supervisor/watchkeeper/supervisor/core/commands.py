"""What the reducer may ask the shell to do.

Rules: a command is a wish; its outcome comes back as ``Replied`` or ``Failed`` with the command's tag, or not at all
when the tag is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..bridge.question import Question


@dataclass(frozen=True, slots=True)
class SeedFrames:
    """``Page.getFrameTree`` of a session: the frames that were there before we attached."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Prepare:
    """A step of preparing a session, by method."""

    session_id: str
    method: str


@dataclass(frozen=True, slots=True)
class DeliverAnswer:
    """The command that answers a dialog."""

    dialog_id: str


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    """The debugger bridge takes a question over. ``handle``: the call frame in which the page stopped."""

    session_id: str
    handle: str
    frame_id: str


@dataclass(frozen=True, slots=True)
class ReadSandbox:
    """The sandbox of an iframe above a question that was asked: of ``owner_of``'s element, on its parent's session.

    First the element is found (``node_id`` 0), then it is described.
    """

    asked: "Asked"
    owner_of: str
    node_id: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that a bridge holds. ``handle``: a call frame id or a Fetch request id; ``origin`` for the latter."""

    session_id: str
    handle: str
    frame_id: str
    via: Literal["debugger", "xhr"]
    question: Question
    origin: str = ""


@dataclass(frozen=True, slots=True)
class FreeTab:
    """A navigation that goes nowhere, which ends a native dialog that the browser takes no answer for.

    ``restore``: the address to put back afterwards. ``dialog_id`` is empty where the dialog is over already.
    """

    session_id: str
    dialog_id: str = ""
    restore: str = ""


Tag = FreeTab | SeedFrames | Prepare | DeliverAnswer | ReadQuestion | ReadSandbox


@dataclass(frozen=True, slots=True)
class Send:
    """Send a CDP command. ``session_id`` None addresses the browser."""

    session_id: str | None
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    tag: Tag | None = None


@dataclass(frozen=True, slots=True)
class DialogInterrupts:
    """Calls of these tabs that are in flight end now: a dialog opened that waits for an answer."""

    target_ids: frozenset[str]
    dialog_id: str


@dataclass(frozen=True, slots=True)
class CrashInterrupts:
    """Calls of these sessions end now: their renderer is gone."""

    session_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DetachInterrupts:
    """Calls of this session end now: its target was closed or moved to another process."""

    session_id: str


Command = Send | DialogInterrupts | CrashInterrupts | DetachInterrupts

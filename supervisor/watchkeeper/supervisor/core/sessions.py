"""CDP sessions: which session speaks to which target.

Rules: owns the attachment. A session belongs to one tab, that of its outermost parent. Flattened auto-attach reaches
direct children only, so each session that is attached asks for its own children.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Target/#method-setAutoAttach
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..bridge import BridgeKind, debugger, leaving, xhr
from .commands import Command, Prepare, SeedFrames, Send

STUCK_AFTER_S = 3.0
_INJECT = "Page.addScriptToEvaluateOnNewDocument"
ATTACHABLE = ("page", "iframe")
AUTO_ATTACH = {
    "autoAttach": True,
    "flatten": True,
    "waitForDebuggerOnStart": True,
    "filter": [{"type": kind} for kind in ATTACHABLE] + [{"exclude": True}],
}


@dataclass(frozen=True, slots=True)
class Session:
    """``root_frame_id`` equals the target id; ``page_id`` is the target id of the tab that the session is part of."""

    session_id: str
    target_id: str
    page_id: str
    parent_id: str | None
    attached_at: float
    depth: int = 0
    """0 for a page, 1 for an out-of-process iframe in it, and so on."""
    prepared: bool = False
    """Page is enabled: dialogs that open from now on reach us."""
    stuck: bool = False
    """It did not answer while it was prepared: most likely a dialog was open before we came."""
    replaying: bool = True
    """Until ``Log.enable`` is answered the browser repeats what was logged before we came."""
    crashed: bool = False


@dataclass(frozen=True, slots=True)
class Sessions:
    by_id: Mapping[str, Session] = field(default_factory=dict)

    def of_target(self, target_id: str) -> Session | None:
        """The youngest session of a target."""
        return next((s for s in reversed(tuple(self.by_id.values())) if s.target_id == target_id), None)

    def of_page(self, page_id: str) -> tuple[Session, ...]:
        """Every session of a tab: the page's own and those of its out-of-process iframes."""
        return tuple(s for s in self.by_id.values() if s.page_id == page_id)


def attached(sessions: Sessions, session_id: str, target_id: str, parent_id: str | None, now: float) -> Sessions:
    parent = sessions.by_id.get(parent_id) if parent_id else None
    session = Session(
        session_id,
        target_id,
        page_id=parent.page_id if parent else target_id,
        parent_id=parent.session_id if parent else None,
        attached_at=now,
        depth=parent.depth + 1 if parent else 0,
    )
    return replace(sessions, by_id={**sessions.by_id, session_id: session})


def detached(sessions: Sessions, session_id: str) -> Sessions:
    """The session is gone, and its descendants, for their events arrived through it."""
    gone = {session_id}
    for session in sessions.by_id.values():  # parents come before their children
        if session.parent_id in gone:
            gone.add(session.session_id)
    return replace(sessions, by_id={key: s for key, s in sessions.by_id.items() if key not in gone})


def prepared(sessions: Sessions, session_id: str) -> Sessions:
    session = sessions.by_id.get(session_id)
    return sessions if session is None else _put(sessions, replace(session, prepared=True, stuck=False))


def caught_up(sessions: Sessions, session_id: str) -> Sessions:
    session = sessions.by_id.get(session_id)
    return sessions if session is None else _put(sessions, replace(session, replaying=False))


def overdue(sessions: Sessions, now: float) -> Sessions:
    """Sessions that have not answered for long are stuck, until they do."""
    for session in sessions.by_id.values():
        if _waits(session) and now >= session.attached_at + STUCK_AFTER_S:
            sessions = _put(sessions, replace(session, stuck=True))
    return sessions


def next_deadline(sessions: Sessions) -> float | None:
    return min((s.attached_at + STUCK_AFTER_S for s in sessions.by_id.values() if _waits(s)), default=None)


def _waits(session: Session) -> bool:
    return not session.prepared and not session.stuck and not session.crashed


def crashed(sessions: Sessions, session_id: str, is_crashed: bool) -> Sessions:
    session = sessions.by_id.get(session_id)
    return sessions if session is None else _put(sessions, replace(session, crashed=is_crashed))


def prepare(session_id: str, bridge: BridgeKind, nonce: str, *, asks: bool) -> tuple[Command, ...]:
    """What a new session is asked, in one go.

    ``Page.enable`` comes first: only a session that had ``Page`` enabled when a dialog opened can answer it. ``asks``:
    the bridge also asks before a page is left.
    """
    return (
        Send(session_id, "Page.enable", tag=Prepare(session_id, "Page.enable")),
        Send(session_id, "Page.setLifecycleEventsEnabled", {"enabled": True}),
        Send(session_id, "Runtime.enable"),
        Send(session_id, "Log.enable", tag=Prepare(session_id, "Log.enable")),
        Send(session_id, "Target.setAutoAttach", AUTO_ATTACH),
        *_bridged(session_id, bridge, nonce),
        *(ask_before_leaving(session_id, bridge, nonce) if asks else ()),
        Send(session_id, "Page.getFrameTree", tag=SeedFrames(session_id)),
        Send(session_id, "Runtime.runIfWaitingForDebugger"),
    )


def ask_before_leaving(session_id: str, bridge: BridgeKind, nonce: str) -> tuple[Command, ...]:
    """``beforeunload`` by the bridge, in every document that follows."""
    return (Send(session_id, _INJECT, {"source": leaving.script(bridge, nonce)}),)


def _bridged(session_id: str, bridge: BridgeKind, nonce: str) -> tuple[Command, ...]:
    """The bridge comes into every document that follows, and into those that are there already."""
    match bridge:
        case "debugger":
            return (
                Send(session_id, "Debugger.enable"),
                Send(session_id, _INJECT, {"source": debugger.SCRIPT, "runImmediately": True}),
            )
        case "xhr":
            return (
                Send(session_id, "Fetch.enable", {"patterns": xhr.PATTERNS}),
                Send(session_id, _INJECT, {"source": xhr.script(nonce), "runImmediately": True}),
            )
        case "never":
            return ()


def _put(sessions: Sessions, session: Session) -> Sessions:
    return replace(sessions, by_id={**sessions.by_id, session.session_id: session})

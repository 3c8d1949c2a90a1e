"""Who is told of changes, in the way of each era: on streams that clients opened with ``subscriptions/listen``, and to
connections of older revisions, of lists always and of resources that they named with ``resources/subscribe``.

Rules: changes come from the supervisor's view as it changes, nothing is polled; a task is watched only while somebody
has subscribed to it. Dialogs are told at once, the page and the console at most once a second. What one principal does
is told to no other. A client that does not read holds up nobody: what waits for it is a set, so it cannot grow. Numbers
of subscriptions are capped, and the refusal names the cap; all of them end with their connection.

Sources: https://modelcontextprotocol.io/specification/2026-07-28/basic/utilities/subscriptions,
https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import event_to_notification

from ..dispatch import Dispatcher
from .pace import Pace
from .principal import principal
from .resources import OF_TASKS, STATUS, Context, Part, found, refuse

if TYPE_CHECKING:
    from watchkeeper.supervisor import Supervisor
    from watchkeeper.supervisor.core.state import BrowserState

MAX_RESOURCES = 100
"""Resources that one connection, or one stream, may subscribe to."""
MAX_STREAMS = 64
"""Streams that one principal may have open."""
EVERY_S: dict[Part, float] = {"dialogs": 0.0, "snapshot": 1.0, "console": 1.0}
LOOK_AGAIN_S = 300.0
"""How long a watch waits for a change at a time; it then goes on waiting."""
_Task = tuple[str, str]
"""Principal and task id."""


def changed(before: "BrowserState", now: "BrowserState") -> frozenset[Part]:
    """What of a task reads differently. Compared as objects first, which are frozen, then by content."""
    parts: set[Part] = set()
    if _differ(before.dialogs, now.dialogs):
        parts |= {"dialogs", "snapshot"}
    if _differ(before.console, now.console):
        parts.add("console")
    pages = (
        (before.frames.by_id, now.frames.by_id),
        (before.targets, now.targets),
        (before.connection, now.connection),
    )
    if any(_differ(*pair) for pair in pages):
        parts.add("snapshot")
    return frozenset(parts)


def _differ(before: object, now: object) -> bool:
    return now is not before and now != before


class Bus:
    """What happened, to the streams of one principal."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}

    def tell(self, event: ServerEvent) -> None:
        for listener in tuple(self._listeners.values()):
            listener(event)

    async def publish(self, event: ServerEvent) -> None:
        self.tell(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        key = object()
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None


class _Streams:
    """The streams of one principal."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.listen = ListenHandler(self.bus)
        self.open = 0


class _Older:
    """A connection of an older revision: what it subscribed to, and what it is yet to be told."""

    def __init__(self, connection: Connection, who: str) -> None:
        self.who = who
        self.uris: set[str] = set()
        self._connection = connection
        self._waiting: dict[ServerEvent, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def tell(self, event: ServerEvent) -> None:
        if isinstance(event, ResourceUpdated) and event.uri not in self.uris:
            return
        self._waiting[event] = None
        if self._sending is None:
            self._sending = asyncio.create_task(self._send(), name="watchkeeper-tell")

    async def _send(self) -> None:
        while self._waiting:
            event = next(iter(self._waiting))
            del self._waiting[event]
            told = event_to_notification(event, {}).model_dump(by_alias=True, mode="json", exclude_none=True)
            params = {name: value for name, value in (told.get("params") or {}).items() if name != "_meta"}
            await self._connection.notify(told["method"], params or None)
        self._sending = None

    def end(self) -> None:
        if self._sending is not None:
            self._sending.cancel()


class Subscriptions:
    """Of one server. Runs in its event loop."""

    def __init__(self, dispatcher: Dispatcher, clock: Callable[[], float] = time.monotonic) -> None:
        self._dispatcher = dispatcher
        self._tasks = dispatcher.tasks
        self._clock = clock
        self._streams: dict[str, _Streams] = {}
        self._older: dict[Connection, _Older] = {}
        self._wanted: Counter[_Task] = Counter()
        self._spelled: dict[tuple[str, str], Counter[str]] = {}
        """By principal and address: how subscribers wrote it, for there are many ways. They are told in theirs."""
        self._watches: dict[_Task, asyncio.Task[None]] = {}
        self._tasks.listen(self._task_changed)
        dispatcher.when_draining(self.close)

    # --- what clients ask ---------------------------------------------------------------------------------------------

    async def listen(self, context: Context, params: types.SubscriptionsListenRequestParams) -> Any:
        """A stream, until its client or the server ends it. Addresses that are none of ours are left out of what is
        acknowledged, as the protocol has it."""
        if self._dispatcher.draining:
            raise MCPError(types.INVALID_REQUEST, "The server is shutting down. Connect again when it has restarted.")
        who = principal()
        streams = self._streams.setdefault(who, _Streams())
        wished = params.notifications
        uris = [uri for uri in dict.fromkeys(wished.resource_subscriptions or ()) if found(uri)]
        if streams.open >= MAX_STREAMS:
            raise MCPError(types.INVALID_REQUEST, f"{MAX_STREAMS} streams are open, as many as may be. Close one.")
        if len(uris) > MAX_RESOURCES:
            raise MCPError(types.INVALID_PARAMS, _too_many(len(uris)))
        kept = wished.model_copy(update={"resource_subscriptions": uris or None})
        streams.open += 1
        self._want(who, uris)
        try:
            return await streams.listen(context, params.model_copy(update={"notifications": kept}))
        finally:
            self._want(who, uris, -1)
            streams.open -= 1
            if not streams.open:
                del self._streams[who]

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Of older revisions; doing it again changes nothing."""
        uri = str(params.uri)
        if found(uri) is None:
            refuse(context, uri, f"There is no resource {uri[:200]!r}.", "resources/list shows what there is.")
        older = self._known(context)
        if uri not in older.uris:
            if len(older.uris) >= MAX_RESOURCES:
                raise MCPError(types.INVALID_PARAMS, _too_many(len(older.uris) + 1))
            older.uris.add(uri)
            self._want(older.who, (uri,))
        return types.EmptyResult()

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        older, uri = self._known(context), str(params.uri)
        if uri in older.uris:
            older.uris.discard(uri)
            self._want(older.who, (uri,), -1)
        return types.EmptyResult()

    async def initialized(self, context: Context, params: types.NotificationParams | None) -> None:
        """A connection of an older revision is there: it hears of lists from now on."""
        self._known(context)

    # --- what happens -------------------------------------------------------------------------------------------------

    def lists_changed(self, *, tools: bool = False, prompts: bool = False) -> None:
        """Everybody is told that these lists are not as they were."""
        events: list[ServerEvent] = [ToolsListChanged()] if tools else []
        events += [PromptsListChanged()] if prompts else []
        for event in events:
            for who in {*self._streams, *(older.who for older in self._older.values())}:
                self._tell(who, event)

    def close(self) -> None:
        """End the streams in good order, and all watching."""
        for streams in self._streams.values():
            streams.listen.close()
        for watch in self._watches.values():
            watch.cancel()
        self._watches.clear()

    def _tell(self, who: str, event: ServerEvent) -> None:
        told: list[ServerEvent] = [event]
        if isinstance(event, ResourceUpdated):
            told = [ResourceUpdated(uri) for uri in self._spelled.get((who, event.uri), ())]
        for event in told:
            if who in self._streams:
                self._streams[who].bus.tell(event)
            for older in self._older.values():
                if older.who == who:
                    older.tell(event)

    def _task_changed(self, who: str, task_id: str) -> None:
        self._tell(who, ResourcesListChanged())
        self._tell(who, ResourceUpdated(STATUS.uri))
        if (who, task_id) in self._wanted:
            self._updated(who, task_id, (resource.part for resource in OF_TASKS if resource.part))
            self._watch(who, task_id)

    def _updated(self, who: str, task_id: str, parts: Iterable[Part]) -> None:
        told = set(parts)
        for resource in OF_TASKS:
            if resource.part in told:
                self._tell(who, ResourceUpdated(resource.template.expand({"task_id": task_id})))

    # --- watching -----------------------------------------------------------------------------------------------------

    def _want(self, who: str, uris: Iterable[str], by: int = 1) -> None:
        """Count who has subscribed to what of which task, and watch those tasks."""
        for uri in uris:
            resource, values = found(uri) or (STATUS, {})
            address = (who, resource.template.expand(values))
            spelled = self._spelled.setdefault(address, Counter())
            spelled[uri] += by
            if not spelled[uri]:
                del spelled[uri]
            if not spelled:
                del self._spelled[address]
            if resource.part is None:
                continue
            task = (who, values["task_id"])
            self._wanted[task] += by
            if not self._wanted[task]:
                del self._wanted[task]
                if task in self._watches:
                    self._watches.pop(task).cancel()
            elif task not in self._watches:
                self._watch(*task)

    def _watch(self, who: str, task_id: str) -> None:
        """Watch the supervisor that the task has now, where it has one."""
        before = self._watches.pop((who, task_id), None)
        if before is not None:
            before.cancel()
        supervisor = self._tasks.peek(who, task_id)
        if supervisor is not None:
            watching = self._watching(who, task_id, supervisor)
            self._watches[who, task_id] = asyncio.create_task(watching, name="watchkeeper-watch")

    async def _watching(self, who: str, task_id: str, supervisor: "Supervisor") -> None:
        from watchkeeper.supervisor.errors import CallTimeout

        pace, seen = Pace(EVERY_S), supervisor.state
        while True:
            due = pace.next()
            wait = LOOK_AGAIN_S if due is None else max(0.0, due - self._clock())

            def differs(state: "BrowserState", last: "BrowserState" = seen) -> "BrowserState | None":
                return state if changed(last, state) else None

            try:
                now = await supervisor.wait_for_state(differs, wait)
            except CallTimeout:
                now = supervisor.state
            for part in changed(seen, now):
                pace.changed(part)
            seen = now
            self._updated(who, task_id, pace.due(self._clock()))

    def _known(self, context: Context) -> _Older:
        # The session is a proxy of this one request; what lives as long as the client is the connection behind it.
        connection = context.session._connection
        older = self._older.get(connection)
        if older is None:
            older = self._older[connection] = _Older(connection, principal())
            connection.exit_stack.callback(self._gone, connection)
        return older

    def _gone(self, connection: Connection) -> None:
        older = self._older.pop(connection)
        older.end()
        self._want(older.who, older.uris, -1)


def _too_many(wished: int) -> str:
    return f"{wished} resources are more than the {MAX_RESOURCES} that one connection may subscribe to; leave some out."

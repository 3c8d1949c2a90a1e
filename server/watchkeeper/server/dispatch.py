"""A call of a tool, from its arguments to both forms of its result. Knows nothing of MCP's messages.

Rules: arguments are checked before anything runs. Every call ends within its limit, and can be cancelled at any
moment. Whatever goes wrong becomes a result with a code, a message and a hint. Each call has a number, which its log
lines and its span have too; of what nobody foresaw the client learns that number and no more. Results of browser tools
begin with the dialogs that are open, and what happened to the task meanwhile.
"""

import difflib
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import anyio

from . import render
from .conversations import Conversations
from .errors import ToolError, told
from .observability import telemetry
from .observability.logs import fields
from .questions import AnswerComesLater, Nobody, Person, Questions, no_longer_so
from .settings import Settings
from .tasks import Tasks, checked_task_id
from .tools import ALL_TOOLS
from .tools.arguments import checked
from .tools.context import of_engine
from .tools.spec import DEFAULT_TASK, Arguments, Call, Image, Json, Progress, ToolResult, ToolSpec

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a caller gets: ``text`` and ``structured`` say the same."""

    text: str
    structured: Json
    is_error: bool = False
    images: tuple[Image, ...] = ()


class UnknownTool(Exception):
    """No tool of this name is offered; ``near`` is the nearest that is, or empty."""

    def __init__(self, name: str, near: str) -> None:
        super().__init__(f"Unknown tool: {name[:80]}" + (f". Did you mean {near}?" if near else ""))
        self.near = near


class Dispatcher:
    """One for a server, whatever its transports."""

    def __init__(
        self,
        settings: Settings,
        tasks: Tasks | None = None,
        conversations: Conversations | None = None,
        tools: tuple[ToolSpec, ...] = ALL_TOOLS,
    ) -> None:
        self.settings = settings
        self.tasks = tasks or Tasks(settings)
        self.conversations = conversations or Conversations(settings)
        self.questions = Questions(settings, self.tasks)
        self._tools = tools
        self._of_engine: tuple[ToolSpec, ...] = ()
        self._in_flight = 0
        self._of_principal: Counter[str] = Counter()
        self._idle = anyio.Event()
        self._draining = False
        self._when_draining: list[Callable[[], None]] = []

    def offered(self) -> tuple[ToolSpec, ...]:
        """The tools of the chosen toolsets that the backend can serve."""
        capabilities = self.tasks.capabilities()
        chosen = self.settings.server.toolsets
        return tuple(
            spec for spec in (*self._tools, *self._of_engine) if spec.toolset in chosen and spec.needs <= capabilities
        )

    def prepare(self) -> None:
        """Load the context engine, when it is not the built-in one, for the tools that it offers. Blocks.

        Raises: UnknownEngine, EngineFailed (also where one of its tools has the name of one of ours), ArchiveError.
        """
        ours = {spec.name for spec in self._tools if spec.toolset in self.settings.server.toolsets}
        self._of_engine = tuple(of_engine(schema) for schema in self.conversations.tools(ours))

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        principal: str,
        progress: Progress,
        person: Person | None = None,
    ) -> Reply:
        """Run a tool. ``person``: who can be asked for consent where settings want it; None: nobody.

        Raises: UnknownTool, AnswerComesLater; everything else is in the reply.
        """
        spec = next((spec for spec in self.offered() if spec.name == name), None)
        if spec is None:
            near = difflib.get_close_matches(name, [spec.name for spec in self.offered()], 1)
            raise UnknownTool(name, near[0] if near else "")
        return await self.run(spec, arguments, principal, progress, person)

    async def run(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any] | None,
        principal: str,
        progress: Progress,
        person: Person | None = None,
    ) -> Reply:
        """Run a tool, offered or not, under the rules of all calls; resources are read so. Raises AnswerComesLater."""
        self._in_flight += 1
        self._of_principal[principal] += 1
        started, outcome = time.monotonic(), "cancelled"
        with fields(call=secrets.token_hex(4), tool=spec.name, principal=principal) as about:
            try:
                reply = await self._run(spec, arguments, principal, progress, person or Nobody(), about)
                outcome = reply.structured["error"]["code"] if reply.is_error else "ok"
                return reply
            except AnswerComesLater:
                outcome = "asked"
                raise
            finally:
                self._ended(about, outcome, (time.monotonic() - started) * 1000)

    def _ended(self, about: dict[str, str], outcome: str, ms: float) -> None:
        """Count, log and trace a call."""
        tool, principal = about["tool"], about["principal"]
        self.tasks.counters.of(principal).call_ended(tool, outcome, ms)
        level = logging.WARNING if outcome == "timeout" else logging.INFO
        log.log(level, "%s %s in %.0f ms", tool, outcome, ms, extra={"outcome": outcome, "ms": round(ms, 1)})
        telemetry.annotate(call=about["call"], task=about.get("task", ""), outcome=outcome)
        self._in_flight -= 1
        self._of_principal[principal] -= 1
        if not self._of_principal[principal]:
            del self._of_principal[principal]
        if not self._in_flight:
            self._idle.set()
            self._idle = anyio.Event()

    def running(self, principal: str) -> int:
        """How many calls of the principal run."""
        return self._of_principal[principal]

    @property
    def draining(self) -> bool:
        return self._draining

    def refuse_new(self) -> None:
        """From here on calls are answered with ``shutting_down``; those that run go on."""
        self._draining = True
        for act in self._when_draining:
            act()

    def when_draining(self, act: Callable[[], None]) -> None:
        """Have ``act`` called when new calls are refused from then on."""
        self._when_draining.append(act)

    async def idle(self) -> None:
        """Wait until no call runs."""
        while self._in_flight:
            await self._idle.wait()

    async def close(self) -> None:
        await self.tasks.close()
        await self.conversations.close()

    async def _run(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any] | None,
        principal: str,
        progress: Progress,
        person: Person,
        about: dict[str, str],
    ) -> Reply:
        task_id = DEFAULT_TASK
        try:
            if self._draining:
                raise ToolError("shutting_down", "The server is shutting down.", "Connect again when it has restarted.")
            if self._of_principal[principal] > self.settings.server.max_calls:
                raise ToolError(
                    "too_many_calls",
                    f"{self.settings.server.max_calls} calls are running, as many as server.max_calls allows.",
                    "Wait until some have ended. Nothing was done.",
                )
            given = checked(spec, arguments)
            task_id = checked_task_id(given.get("task_id", DEFAULT_TASK))
            if spec.browser:
                about["task"] = task_id
            given = await self._agreed(spec, given, principal, person)
            result = await self._limited(spec, given, principal, progress)
        except AnswerComesLater:
            raise
        except ToolError as error:
            return self._failed(spec, error, principal, task_id)
        except Exception as error:  # noqa: BLE001 - the boundary: nothing a tool raises reaches the client unsaid
            return self._failed(spec, told(error) or _unforeseen(spec, error, about["call"]), principal, task_id)
        text, structured = self._with_dialogs(spec, result.text, result.structured, principal, task_id)
        return self.shown(text, structured, images=result.images)

    async def _agreed(self, spec: ToolSpec, given: Arguments, principal: str, person: Person) -> Arguments:
        """The arguments as the person wants them, where one has to be asked. Their time is no part of the call's."""
        question = self.questions.about(spec, principal, given)
        if question is None:
            return given
        with self._using(spec, principal, given.get("task_id", DEFAULT_TASK)):
            chosen = await person.ask(question)
        now = self.questions.about(spec, principal, given)
        if now is not None and now.subject != question.subject:
            raise no_longer_so()
        return question.accepted(given, chosen)

    async def _limited(self, spec: ToolSpec, given: Arguments, principal: str, progress: Progress) -> ToolResult:
        call = Call(self.settings, self.tasks, self.conversations, principal, progress)
        limit = spec.limit(given, self.settings)
        task_id = given.get("task_id", DEFAULT_TASK)
        try:
            with anyio.fail_after(limit) as scope, self._using(spec, principal, task_id):
                return await spec.handler(call, given)
        except TimeoutError:
            if not scope.cancelled_caught:
                raise
            raise ToolError(
                "timeout",
                f"{spec.name} did not end within {limit:g} s and was stopped.",
                "Take a browser_snapshot to see what is there." if spec.browser else "Try with less.",
            ) from None

    def _using(self, spec: ToolSpec, principal: str, task_id: str) -> AbstractContextManager[None]:
        return self.tasks.using(principal, task_id) if spec.browser else nullcontext()

    def _failed(self, spec: ToolSpec, error: ToolError, principal: str, task_id: str) -> Reply:
        # What an error says of dialogs may be older than what is open now; the list of those stands first.
        structured = {"error": {"code": error.code, "message": error.message, "hint": error.hint, **error.more}}
        text = render.error(error.code, error.message, error.hint)
        text, structured = self._with_dialogs(spec, text, structured, principal, task_id)
        return self.shown(text, structured, is_error=True)

    def shown(self, text: str, structured: Json, **more: Any) -> Reply:
        """Nothing leaves otherwise: no secret, no half of a character, nothing that steers."""
        masked = self.tasks.secrets.masked
        return Reply(render.visible(masked(text)), render.sound(masked(structured)), **more)

    def _with_dialogs(
        self, spec: ToolSpec, text: str, structured: Json, principal: str, task_id: str
    ) -> tuple[str, Json]:
        supervisor = self.tasks.get(principal, task_id) if spec.browser else None
        if supervisor is None:
            return text, structured
        if spec.tells and supervisor.notice:
            notice, supervisor.notice = supervisor.notice, ""
            text, structured = render.joined(notice, text), {"notice": notice, **structured}
        view = supervisor.snapshot()
        pending = [dialog.as_dict() for dialog in view.pending_dialogs]
        if pending or "pending_dialogs" in structured:
            structured = {"pending_dialogs": pending, **{k: v for k, v in structured.items() if k != "pending_dialogs"}}
        return render.joined(render.open_dialogs(view.pending_dialogs, view.frames), text), structured


def _unforeseen(spec: ToolSpec, error: Exception, number: str) -> ToolError:
    log.error("internal error %s in %s", number, spec.name, exc_info=error)
    return ToolError(
        "internal_error",
        f"{spec.name} failed for a reason that nobody foresaw. The server's log has it under {number}.",
        "This is a fault of Watchkeeper; try another way, and report it with that part of the log.",
        id=number,
    )

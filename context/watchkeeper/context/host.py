"""The host: calls an engine's hooks for many conversations, as hosts should.

Rules:
- Each session has an engine of its own; calls of one session are one after the other, those of others run beside it.
- Arguments that an engine's signature does not take are not passed: engines of older interfaces keep working.
- What an engine gives back is checked: the shape of a message list, the providers' rules, and that it is smaller.
- A call that raises, or is cancelled, leaves the session as it was; an engine's own exception becomes `EngineFailed`.
- `auto` compacts by the threshold when there are real counts, by hygiene (85% of the window) when there are none.
"""

from __future__ import annotations

import inspect
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

from .core.cache import CacheDecision, decide_caching, mark
from .core.messages import Message, check_messages
from .core.repair import repair
from .engine import ContextEngine, Progress, Usage
from .errors import Cancelled, ContextError, EngineFailed, InvalidArgument, InvalidMessages
from .report import Report
from .tokens import Tokenizer, tokenizer_for, total_tokens

Mode = Literal["auto", "force", "dry_run", "prune", "select", "observe"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
SessionAction = Literal["", "reset", "end"]
DEFAULT_SESSION: Final = "default"


@dataclass(frozen=True, slots=True)
class ContextCall:
    """One request to the host; see `ContextEngine` for what the fields mean to an engine.

    Attributes:
        messages: OpenAI chat messages; checked, never mutated.
        session_id: whose summary is updated.
        mode: `auto` compacts when due, `force` now, `dry_run` only tells what it would do, `prune` clears old tool
            results, `select` chooses messages for one request within `budget_tokens`, `observe` tells of a turn.
        current_tokens, usage: what the provider counted last.
        model, context_length, provider: of the model in use; budgets are derived again when they change.
        target_tokens: a cap on the result, for engines that take one.
        cache_ttl: lifetime of prompt cache marks, which are set if `provider` and `model` take them; empty for none.
        session: `reset` forgets what is known of the session first; `end` ends it afterwards.
    """

    messages: Sequence[Message]
    session_id: str = DEFAULT_SESSION
    mode: Mode = "auto"
    focus_topic: str | None = None
    memory_context: str = ""
    current_tokens: int | None = None
    usage: Usage | None = None
    model: str = ""
    context_length: int = 0
    provider: str = ""
    target_tokens: int | None = None
    budget_tokens: int = 0
    incoming_message: Message | None = None
    cache_ttl: str = ""
    session: SessionAction = ""


@dataclass(frozen=True, slots=True)
class ContextAnswer:
    """`messages` is the very list of the call when nothing changed; `status` is what people should be told."""

    messages: Sequence[Message]
    report: Report
    mode: Mode
    engine: str
    cache: CacheDecision
    status: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The report with what the host knows, as JSON values; without the messages."""
        out = self.report.as_dict() | {"mode": self.mode, "engine": self.engine, "cache": self.cache.as_dict()}
        return out | ({"status": self.status} if self.status else {})


@dataclass(slots=True)
class _Session:
    engine: ContextEngine
    lock: threading.Lock = field(default_factory=threading.Lock)
    used_at: float = 0.0
    model: tuple[str, int, str] = ("", 0, "")
    messages: Sequence[Message] = ()
    started: bool = False


class ContextHost:
    """Sessions and their engines.

    Args:
        make_engine: a new engine, with its settings; called once for each session.
        max_sessions: sessions kept at once; the one used least recently ends when another begins.
        idle_seconds: after which an unused session ends, at the next call or `end_idle`.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        make_engine: Callable[[], ContextEngine],
        *,
        max_sessions: int = 64,
        idle_seconds: float = 3_600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make_engine = make_engine
        self._max = max_sessions
        self._idle = idle_seconds
        self._clock = clock
        self._sessions: dict[str, _Session] = {}
        self._lock = threading.Lock()

    # --- the one way in

    def handle(
        self,
        call: ContextCall,
        *,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> ContextAnswer:
        """Carry out a call; blocks, so run it in a worker thread.

        Raises:
            InvalidMessages, InvalidArgument: nothing was changed.
            Cancelled: as asked; nothing was changed.
            EngineFailed: the engine raised, or gave back something that is no message list.
        """
        messages = check_messages(call.messages)
        _check(call)
        decide_caching(call.model, call.provider, call.cache_ttl or "5m")
        self.end_idle()
        with self._held(call.session_id) as session:
            self._prepare(session, call)
            answer = self._answer(session, call, messages, {"progress": progress, "cancelled": cancelled})
            if call.mode not in ("dry_run", "select"):
                session.messages = answer.messages
            session.used_at = self._clock()
        if call.session == "end":
            self.end(call.session_id)
        return self._with_marks(answer, call)

    def _prepare(self, session: _Session, call: ContextCall) -> None:
        engine = session.engine
        if not session.started:
            invoke(engine.on_session_start, call.session_id)
            session.started = True
        if call.session == "reset":
            invoke(engine.on_session_reset)
        model = (call.model or session.model[0], call.context_length or session.model[1], call.provider)
        if (call.model or call.context_length) and model != session.model:
            length = call.context_length or (0 if call.model != session.model[0] else session.model[1])
            length = length or _length_of(call.model, engine)
            invoke(engine.update_model, model[0], length, provider=call.provider)
            session.model = model
        usage = _usage(call)
        if usage is not None:
            invoke(engine.update_from_response, usage)

    def _answer(
        self, session: _Session, call: ContextCall, messages: list[Message], options: Mapping[str, Any]
    ) -> ContextAnswer:
        engine = session.engine
        started = self._clock()
        tokenizer = tokenizer_for(call.model or session.model[0])
        checked = _Checked(engine, call, messages, tokenizer)
        if call.mode == "observe":
            invoke(engine.on_turn_complete, messages, usage=_usage(call))
            return checked.same("the turn was observed")
        if call.mode == "prune":
            pruned, n = invoke(engine.prune_tool_results_only, messages, current_tokens=call.current_tokens)
            if pruned is messages or not n:
                return checked.same("no old tool result is worth clearing")
            return checked.changed(pruned, f"{n:,} old tool results were cleared", self._clock() - started)
        if call.mode == "select":
            chosen = invoke(
                engine.select_context,
                messages,
                conversation_messages=session.messages or messages,
                incoming_message=call.incoming_message,
                budget_tokens=call.budget_tokens or call.target_tokens or 0,
            )
            if not chosen:
                return checked.same("the engine keeps the messages of this request")
            return checked.changed(chosen, "messages chosen for this request only", self._clock() - started)
        if call.mode == "dry_run":
            return self._previewed(engine, call, checked)
        due, reason = self._due(engine, call, messages)
        if not due:
            return checked.same(reason)
        compressed = invoke(
            engine.compress,
            messages,
            current_tokens=call.current_tokens,
            focus_topic=call.focus_topic,
            force=call.mode == "force" or call.target_tokens is not None,
            memory_context=call.memory_context,
            target_tokens=call.target_tokens,
            **options,
        )
        answer = checked.result(compressed, reason, self._clock() - started)
        return self._with_status(engine, call, answer)

    def _due(self, engine: ContextEngine, call: ContextCall, messages: list[Message]) -> tuple[bool, str]:
        """Whether to compact: when asked for; by real counts at the threshold; without them by a cheap estimate."""
        if call.mode == "force":
            if not invoke(engine.has_content_to_compress, messages) and call.target_tokens is None:
                return False, "the engine finds nothing to compress; target_tokens would go further"
            return True, "asked for"
        if call.target_tokens is not None:
            return True, f"a target of {call.target_tokens:,} tokens was given"
        usage = _usage(call)
        if usage is not None:
            due, why = invoke(engine.should_compress_info, call.current_tokens or usage.get("prompt_tokens") or None)
            return bool(due), str(why)
        if invoke(engine.should_compress_preflight, messages):
            return True, "the messages have reached 85% of the window"
        return False, "not due: no token count was given, and by estimate the messages are well within the window"

    def _previewed(self, engine: ContextEngine, call: ContextCall, checked: _Checked) -> ContextAnswer:
        preview = getattr(engine, "preview", None)
        if preview is None:
            due, why = self._due(engine, call, checked.messages)
            return checked.same(f"dry run: {'due' if due else 'not due'}: {why}")
        report = invoke(preview, checked.messages, focus_topic=call.focus_topic, target_tokens=call.target_tokens)
        _, why = self._due(engine, replace(call, mode="auto"), checked.messages)
        return checked.answer(checked.messages, replace(report, reason=f"{report.reason}; {why}"))

    def _with_status(self, engine: ContextEngine, call: ContextCall, answer: ContextAnswer) -> ContextAnswer:
        """What people are told: a routine success only as the engine likes, anything else always."""
        report = answer.report
        if report.warnings:
            return replace(answer, status="; ".join(report.warnings))
        if not report.compressed:
            return answer
        default = f"Context compacted: {report.tokens_before:,} -> {report.tokens_after:,} tokens"
        if call.mode == "force":
            return replace(answer, status=default)
        told = invoke(engine.get_automatic_compaction_status_message, "done", default, report=report.as_dict())
        return replace(answer, status=told or "")

    def _with_marks(self, answer: ContextAnswer, call: ContextCall) -> ContextAnswer:
        if not call.cache_ttl:
            return answer
        decision = decide_caching(call.model, call.provider, call.cache_ttl)
        if not decision.enabled or call.mode == "dry_run":
            return replace(answer, cache=decision)
        return replace(answer, cache=decision, messages=mark(answer.messages, ttl=decision.ttl, native=decision.native))

    # --- tools that the engine offers

    def tool_schemas(self) -> list[dict[str, Any]]:
        """The engine's tools: `{name, description, parameters}`; asked of a new engine that has no session."""
        return list(self._make_engine().get_tool_schemas())

    def call_tool(self, session_id: str, name: str, args: Mapping[str, Any], **kwargs: Any) -> str:
        """The JSON text that an engine's tool answers with; `{"error": ...}` is a tool error."""
        with self._held(session_id) as session:
            if not session.started:
                invoke(session.engine.on_session_start, session_id)
                session.started = True
            session.used_at = self._clock()
            answer = invoke(session.engine.handle_tool_call, name, dict(args), **kwargs)
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str)

    def status(self, session_id: str = DEFAULT_SESSION) -> dict[str, Any]:
        """The engine's status for a session; of a new engine if the session is not known."""
        with self._lock:
            session = self._sessions.get(session_id)
        engine = session.engine if session else self._make_engine()
        status: dict[str, Any] = invoke(engine.get_status)
        return status

    # --- sessions

    def sessions(self) -> list[str]:
        """The ids of the sessions that are kept, the one used least recently first."""
        with self._lock:
            return sorted(self._sessions, key=lambda name: self._sessions[name].used_at)

    def end(self, session_id: str) -> bool:
        """End a session; whether there was one."""
        with self._lock:
            session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        with session.lock:
            if session.started:
                invoke(session.engine.on_session_end, session_id, list(session.messages))
            close = getattr(session.engine, "close", None)
            if callable(close):  # an engine that holds files or connections gives them back with its session
                close()
        return True

    def end_idle(self) -> list[str]:
        """End the sessions that nobody used for `idle_seconds`; their ids."""
        now = self._clock()
        with self._lock:
            idle = [name for name, s in self._sessions.items() if now - s.used_at > self._idle and not s.lock.locked()]
        return [name for name in idle if self.end(name)]

    def close(self) -> None:
        """End all sessions; a failing engine does not keep the others from ending."""
        failures = []
        for name in self.sessions():
            try:
                self.end(name)
            except EngineFailed as error:
                failures.append(error)
        if failures:
            raise failures[0]

    @contextmanager
    def _held(self, session_id: str) -> Iterator[_Session]:
        """The session, locked; a new one if it ended while its lock was waited for."""
        while True:
            session = self._of(session_id)
            with session.lock:
                with self._lock:
                    ended = self._sessions.get(session_id) is not session
                if ended:
                    continue
                yield session
                return

    def _of(self, session_id: str) -> _Session:
        if not isinstance(session_id, str) or not session_id or len(session_id) > 200:
            raise InvalidArgument("session_id must be text of 1 to 200 characters", "it names the conversation")
        oldest: list[str] = []
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None:
                session = self._sessions[session_id] = _Session(self._make_engine(), used_at=self._clock())
                if len(self._sessions) > self._max:
                    others = [n for n in self._sessions if n != session_id and not self._sessions[n].lock.locked()]
                    oldest = sorted(others, key=lambda n: self._sessions[n].used_at)[: len(self._sessions) - self._max]
        for name in oldest:
            self.end(name)
        return session


class _Checked:
    """Answers about one message list, from an engine that may know nothing of reports."""

    def __init__(self, engine: ContextEngine, call: ContextCall, messages: list[Message], tokenizer: Tokenizer) -> None:
        self.engine = engine
        self.call = call
        self.messages = messages
        self.tokenizer = tokenizer

    def answer(self, messages: Sequence[Message], report: Report) -> ContextAnswer:
        same = messages is self.messages
        return ContextAnswer(
            messages=self.call.messages if same else messages,
            report=report,
            mode=self.call.mode,
            engine=self.engine.name,
            cache=CacheDecision(False, "no cache_ttl was given"),
        )

    def same(self, reason: str) -> ContextAnswer:
        return self.answer(self.messages, self._report(self.messages, reason, compressed=False))

    def changed(self, messages: object, reason: str, seconds: float) -> ContextAnswer:
        """The engine's list, if it is one; mended where a provider would refuse it."""
        try:
            checked = check_messages(messages)
        except InvalidMessages as error:
            raise EngineFailed(
                f"the engine {self.engine.name} gave back something that is no message list: {error.message}",
                "the history was not changed; choose another engine with context.engine",
            ) from error
        result, repairs = repair(checked)
        report = self._report(result, reason, compressed=True)
        repaired = tuple(f"in the engine's result: {r}" for r in repairs)
        return self.answer(result, replace(report, repairs=repaired, duration_ms=seconds * 1000))

    def result(self, messages: object, reason: str, seconds: float) -> ContextAnswer:
        """What `compress` gave: with the engine's own report if it makes one, else with one about the two lists."""
        report = getattr(self.engine, "last_report", None)
        if isinstance(report, Report) and isinstance(messages, list):
            return self.answer(messages, report)
        if messages is self.messages:
            return self.same("the engine found nothing to compress")
        answer = self.changed(messages, reason, seconds)
        if answer.report.tokens_after >= answer.report.tokens_before:
            return self.same("the engine's result would not be smaller")
        return answer

    def _report(self, messages: Sequence[Message], reason: str, *, compressed: bool) -> Report:
        before = total_tokens(self.messages, self.tokenizer.count)
        after = before if messages is self.messages else total_tokens(messages, self.tokenizer.count)
        return Report(
            compressed=compressed,
            reason=reason,
            tokens_before=before,
            tokens_after=after,
            tokenizer=self.tokenizer.label,
            reported_tokens=self.call.current_tokens,
            threshold_tokens=self.engine.threshold_tokens,
            context_length=self.engine.context_length,
            target_tokens=self.call.target_tokens,
            messages_before=len(self.messages),
            messages_after=len(messages),
        )


def invoke(hook: Callable[..., Any], *args: Any, **optional: Any) -> Any:
    """Call a hook of an engine with the optional arguments that its signature takes.

    Raises:
        EngineFailed: it raised something that is not one of ours.
    """
    try:
        parameters = inspect.signature(hook).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]  # a hook that cannot be inspected gets what is required
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        taken = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
        optional = {k: v for k, v in optional.items() if k in taken}
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
            args = args[: len(positional)]
    try:
        return hook(*args, **optional)
    except (ContextError, Cancelled):
        raise
    except Exception as error:
        name = getattr(hook, "__qualname__", str(hook))
        raise EngineFailed(
            f"{name} raised {type(error).__name__}: {error!s:.200}",
            "the history was not changed; this is a fault of the engine named by context.engine",
        ) from error


def _check(call: ContextCall) -> None:
    if call.mode not in MODES:
        raise InvalidArgument(f"mode is {call.mode!r:.40}", f"it is one of {', '.join(MODES)}")
    if call.session not in get_args(SessionAction):
        raise InvalidArgument(f"session is {call.session!r:.40}", "it is reset, end, or left out")
    for name in ("current_tokens", "target_tokens", "context_length", "budget_tokens"):
        value = getattr(call, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise InvalidArgument(f"{name} is {value!r:.40}", "it is a whole number of tokens")
    if call.usage is not None and not isinstance(call.usage, Mapping):
        raise InvalidArgument("usage is not an object", "it has prompt_tokens, completion_tokens and total_tokens")


def _usage(call: ContextCall) -> dict[str, Any] | None:
    """The usage with the keys that every engine may rely on; None when nothing was counted."""
    if call.usage is None and call.current_tokens is None:
        return None
    usage = dict(call.usage or {})
    usage.setdefault("prompt_tokens", usage.get("input_tokens", call.current_tokens or 0))
    usage.setdefault("completion_tokens", usage.get("output_tokens", 0))
    usage.setdefault("total_tokens", usage["prompt_tokens"] + usage["completion_tokens"])
    return usage


def _length_of(model: str, engine: ContextEngine) -> int:
    from .windows import context_length_for

    return context_length_for(model) if model else engine.context_length


__all__ = ["DEFAULT_SESSION", "MODES", "ContextAnswer", "ContextCall", "ContextHost", "Mode", "invoke"]

"""One request to compress, whoever makes it: the tool or the command line.

Rules: runs in a worker thread, with the conversation's engine to itself. Which hooks of the engine are called is
decided here, and here only. What the engine's own interface does not take is not given to it, and the caller is told.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .conversations import Conversation
from .errors import ToolError

Mode = Literal["auto", "force", "dry_run", "prune", "select", "observe"]
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for; names as in the tool's schema."""

    messages: list[Message]
    mode: Mode = "auto"
    focus_topic: str | None = None
    current_tokens: int | None = None
    usage: Mapping[str, Any] | None = None
    model: str = ""
    context_length: int | None = None
    provider: str = ""
    target_tokens: int | None = None
    cache_ttl: str = "5m"
    progress: Callable[[float, str], None] | None = None
    cancelled: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """``report`` is JSON, ``told`` the same in words."""

    messages: list[Message]
    report: dict[str, Any] = field(default_factory=dict)
    told: str = ""


def carry_out(order: Order, conversation: Conversation) -> Outcome:
    """Raises: ContextError of every kind, ToolError where the engine cannot do what is asked."""
    engine = conversation.engine
    with conversation.lock:
        if order.model or order.context_length:
            from watchkeeper.context.windows import context_length_for

            length = order.context_length or context_length_for(order.model)
            engine.update_model(order.model, length, provider=order.provider)
        usage = order.usage
        if usage is None and order.current_tokens is not None:
            usage = {
                "prompt_tokens": order.current_tokens,
                "completion_tokens": 0,
                "total_tokens": order.current_tokens,
            }
        if usage is not None:
            engine.update_from_response(usage)
        return _MODES[order.mode](order, engine, usage)


def _auto(order: Order, engine: Any, usage: Mapping[str, Any] | None) -> Outcome:
    if usage is not None:
        due, reason = engine.should_compress_info(order.current_tokens)
    else:
        due = engine.should_compress_preflight(order.messages)
        reason = (
            "a rough count reaches the limit" if due else "not due yet, by a rough count; mode=force compresses anyway"
        )
    # A cap on the whole is a wish by itself.
    if not due and order.target_tokens is None:
        return Outcome(order.messages, {"compressed": False, "reason": reason}, f"Not compressed: {reason}")
    return _compressed(order, engine, force=order.target_tokens is not None)


def _force(order: Order, engine: Any, usage: Mapping[str, Any] | None) -> Outcome:
    return _compressed(order, engine, force=True)


def _compressed(order: Order, engine: Any, *, force: bool) -> Outcome:
    optional = {
        "current_tokens": order.current_tokens,
        "focus_topic": order.focus_topic,
        "force": force,
        "target_tokens": order.target_tokens,
        "progress": order.progress,
        "cancelled": order.cancelled,
    }
    given, left = _taken(engine.compress, optional)
    messages = engine.compress(order.messages, **given)
    outcome = _reported(order, engine, messages, messages is not order.messages)
    if left:
        note = f"The engine {engine.name} does not take {', '.join(left)}."
        outcome.report.setdefault("warnings", []).append(note)
        return Outcome(outcome.messages, outcome.report, f"{outcome.told}\nWarning    {note}")
    return outcome


def _dry_run(order: Order, engine: Any, usage: Mapping[str, Any] | None) -> Outcome:
    preview = getattr(engine, "preview", None)
    if preview is None:
        raise ToolError("not_supported", f"The engine {engine.name} has no dry run.", "Use mode auto or force.")
    given, _ = _taken(preview, {"focus_topic": order.focus_topic, "target_tokens": order.target_tokens})
    report = preview(order.messages, **given)
    return Outcome(order.messages, report.as_dict(), f"This is what would be done.\n{report.render()}")


def _prune(order: Order, engine: Any, usage: Mapping[str, Any] | None) -> Outcome:
    messages, cleared = engine.prune_tool_results_only(order.messages, order.current_tokens)
    reason = f"{cleared} old tool results were cleared" if cleared else "no tool results are worth clearing"
    return Outcome(messages, {"compressed": bool(cleared), "reason": reason, "cleared": cleared}, f"Pruned: {reason}.")


def _select(order: Order, engine: Any, usage: Mapping[str, Any] | None) -> Outcome:
    budget = order.target_tokens or 0
    chosen = engine.select_context(order.messages, budget_tokens=budget)
    reason = "selected for this request only; keep your history" if chosen else "the messages fit, or no target_tokens"
    return Outcome(chosen or order.messages, {"compressed": bool(chosen), "reason": reason}, f"Selected: {reason}.")


def _observe(order: Order, engine: Any, usage: Mapping[str, Any] | None) -> Outcome:
    engine.on_turn_complete(order.messages, usage)
    return Outcome(
        order.messages, {"compressed": False, "reason": "observed", "status": engine.get_status()}, "Observed."
    )


_MODES: Mapping[Mode, Callable[[Order, Any, Mapping[str, Any] | None], Outcome]] = {
    "auto": _auto,
    "force": _force,
    "dry_run": _dry_run,
    "prune": _prune,
    "select": _select,
    "observe": _observe,
}


def _reported(order: Order, engine: Any, messages: list[Message], changed: bool) -> Outcome:
    report = getattr(engine, "last_report", None)
    if report is not None and hasattr(report, "as_dict"):
        return Outcome(messages, report.as_dict(), report.render())
    facts = {"compressed": changed, "messages_before": len(order.messages), "messages_after": len(messages)}
    told = f"{'Compressed' if changed else 'Not compressed'}: {len(order.messages)} -> {len(messages)} messages."
    return Outcome(messages, {**facts, "reason": f"by the engine {engine.name}"}, told)


def _taken(call: Callable[..., Any], optional: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What of the optional arguments a callable takes, and those with a value that it does not."""
    parameters = inspect.signature(call).parameters
    everything = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    wanted = {name: value for name, value in optional.items() if value is not None}
    given = {name: value for name, value in wanted.items() if everything or name in parameters}
    silent = {"progress", "cancelled", "current_tokens"}
    return given, [name for name in wanted if name not in given and name not in silent]


def as_summary(messages: list[Message]) -> str:
    """The compressed conversation as one text, to start afresh with."""
    from watchkeeper.context.core.messages import call_arguments, call_name, calls_of, content_text

    parts = []
    for message in messages:
        if message.get("role") in ("system", "developer"):
            continue
        lines = [content_text(message.get("content"))]
        lines += [f"(called {call_name(call)} with {call_arguments(call)})" for call in calls_of(message)]
        text = "\n".join(line for line in lines if line.strip())
        if text:
            parts.append(f"[{message.get('role')}]\n{text}")
    return "\n\n".join(parts)

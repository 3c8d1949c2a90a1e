"""The tool that compresses conversations, and those that the active engine brings along."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
import anyio.from_thread

from .. import render
from ..compression import Order, Outcome, as_summary, carry_out
from ..conversations import Conversation
from ..errors import ToolError
from ..files import allowed_folders, new_file, transcript_file
from .spec import Annotations, Arguments, Call, Json, ToolResult, ToolSpec

COMPRESS_LIMIT_S = 300.0
ENGINE_TOOL_LIMIT_S = 60.0
PROGRESS_EVERY_S = 0.25
SESSION_ID: Json = {"type": "string", "minLength": 1, "maxLength": 200}


async def compress(call: Call, arguments: Arguments) -> ToolResult:
    if "session" in arguments:
        return await _session(call, arguments)
    if ("messages" in arguments) == ("transcript" in arguments):
        raise ToolError("invalid_arguments", "Give either messages or transcript.", "transcript names a file.")
    cancelled = threading.Event()
    progress = _progress(call)

    def work() -> ToolResult:
        return _compress(call, arguments, progress, cancelled)

    try:
        # A cancelled call is not waited for: the engine is told, and changes nothing once it is.
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    finally:
        cancelled.set()


def _compress(
    call: Call, arguments: Arguments, progress: Callable[[float, str], None], cancelled: threading.Event
) -> ToolResult:
    loaded = None
    if "transcript" in arguments:
        from watchkeeper.context.transcripts import load_transcript

        loaded = load_transcript(transcript_file(arguments["transcript"], call.settings))
    messages: list[Any] = list(loaded.messages) if loaded is not None else arguments["messages"]
    conversation = call.conversations.get(call.principal, arguments.get("session_id"))
    outcome: Outcome | None = None
    try:
        outcome = carry_out(_order(call, arguments, messages, progress, cancelled), conversation)
    finally:
        call.conversations.done(conversation, outcome.messages if outcome else messages)
    problems = [str(problem) for problem in loaded.problems[:20]] if loaded is not None else []
    return _shown(call, arguments, outcome, loaded, problems)


def _order(
    call: Call,
    arguments: Arguments,
    messages: list[Any],
    progress: Callable[[float, str], None],
    cancelled: threading.Event,
) -> Order:
    names = ("mode", "focus_topic", "current_tokens", "usage", "model", "context_length", "provider", "target_tokens")
    return Order(
        messages,
        **{name: arguments[name] for name in names if name in arguments},
        cache_ttl=arguments.get("cache_ttl", call.settings.prompt_caching.cache_ttl),
        progress=progress,
        cancelled=cancelled.is_set,
    )


def _shown(call: Call, arguments: Arguments, outcome: Outcome, loaded: Any, problems: list[str]) -> ToolResult:
    """The outcome in the form that was asked for."""
    output = arguments.get("output", "summary" if loaded is not None else "messages")
    if arguments.get("mode") in ("dry_run", "observe"):
        output = "report"
    structured: Json = {"report": outcome.report}
    parts = [outcome.told]
    if problems:
        structured["problems"] = problems
        parts.append("Not everything in the transcript could be read:\n" + "\n".join(problems))
    if output == "messages":
        structured["messages"] = outcome.messages
        changed = bool(outcome.report.get("compressed"))
        parts.append(
            render.fenced(json.dumps(outcome.messages, ensure_ascii=False), "messages") if changed else "Keep them all."
        )
    elif output == "summary":
        structured["summary"] = as_summary(outcome.messages)
        parts.append(render.fenced(structured["summary"], "summary"))
    elif output == "file":
        structured["file"] = _written(call, outcome.messages, loaded)
        parts.append(f"Written: {structured['file']}")
    return ToolResult(render.joined(*parts), structured)


def _written(call: Call, messages: list[Any], loaded: Any) -> str:
    from watchkeeper.context.transcripts import dump_transcript

    folder = allowed_folders(call.settings)[0]
    path = new_file(folder, "compressed", ".json" if loaded is None or not loaded.form.endswith("l") else ".jsonl")
    dump_transcript(messages, path, loaded.form if loaded is not None else "openai", like=loaded)
    return str(path)


async def _session(call: Call, arguments: Arguments) -> ToolResult:
    session_id = arguments.get("session_id", "default")

    def work() -> str:
        if arguments["session"] == "end":
            ended = call.conversations.end(call.principal, session_id)
            return "ended" if ended else "not known, so there was nothing to end"
        conversation = call.conversations.get(call.principal, session_id)
        with conversation.lock:
            conversation.engine.on_session_reset()
        return "reset: its earlier summary is forgotten"

    what = await anyio.to_thread.run_sync(work)
    return ToolResult(f"Session {session_id!r} is {what}.", {"session_id": session_id, "outcome": what})


def _progress(call: Call) -> Callable[[float, str], None]:
    """For the worker thread; not more often than a person can read."""
    last = 0.0

    def tell(done: float, what: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_EVERY_S or done >= 1:
            last = now
            anyio.from_thread.run(call.progress, done, 1.0, what)

    return tell


COMPRESS = ToolSpec(
    name="compress_context",
    title="Compress a conversation",
    description=(
        "Shrink a conversation and report what was kept: identifiers, decisions, what people typed. Give messages "
        "(the host replaces its history by the result) or a transcript file. It cannot shrink your own context."
    ),
    properties={
        "messages": {"type": "array", "items": {"type": "object"}, "description": "OpenAI chat messages"},
        "transcript": {"type": "string", "description": "Path, or claude-code:latest"},
        "session_id": {**SESSION_ID, "description": "Updates its earlier summary"},
        "mode": {"enum": ["auto", "force", "dry_run", "prune", "select", "observe"], "description": "auto: if due"},
        "target_tokens": {"type": "integer", "minimum": 200, "description": "Cap of the result"},
        "focus_topic": {"type": "string", "maxLength": 1000},
        "current_tokens": {"type": "integer", "minimum": 0},
        "usage": {"type": "object"},
        "model": {"type": "string", "maxLength": 200},
        "context_length": {"type": "integer", "minimum": 1000, "maximum": 100_000_000},
        "output": {"enum": ["messages", "summary", "file"]},
        "session": {"enum": ["reset", "end"], "description": "Instead of compressing"},
    },
    handler=compress,
    limit=lambda arguments, settings: COMPRESS_LIMIT_S,
    annotations=Annotations(idempotent=True, open_world=False),
    browser=False,
)

TOOLS: tuple[ToolSpec, ...] = (COMPRESS,)


def of_engine(schema: Json) -> ToolSpec:
    """A tool that an engine offers: ``{name, description, parameters}``. It works on the conversation used last."""
    parameters = schema["parameters"]

    async def handle(call: Call, arguments: Arguments) -> ToolResult:
        asked = {name: value for name, value in arguments.items() if name != "session_id" or name in own}

        def work() -> str:
            conversation = _conversation(call, arguments.get("session_id"))
            with conversation.lock:
                return conversation.call_tool(schema["name"], asked)

        answer = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        found = json.loads(answer)
        if isinstance(found, dict) and "error" in found:
            raise ToolError("engine_tool_failed", str(found["error"]), "Change the arguments as it says.")
        return ToolResult(render.fenced(answer, "archive"), {"result": found})

    own = dict(parameters.get("properties", {}))
    return ToolSpec(
        name=schema["name"],
        title=schema["name"].replace("_", " ").capitalize(),
        description=schema["description"],
        properties={**own, "session_id": own.get("session_id", SESSION_ID)},
        required=tuple(parameters.get("required", ())),
        handler=handle,
        limit=lambda arguments, settings: ENGINE_TOOL_LIMIT_S,
        annotations=Annotations(read_only=True, open_world=False),
        browser=False,
    )


def _conversation(call: Call, session_id: str | None) -> Conversation:
    if session_id is not None:
        return call.conversations.get(call.principal, session_id)
    return call.conversations.latest(call.principal)

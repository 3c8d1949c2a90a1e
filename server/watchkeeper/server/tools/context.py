"""The tool that compresses conversations, and those that the active engine brings along."""

import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
import anyio.from_thread

from .. import render
from ..errors import ToolError
from ..security.files import allowed_folders, new_file, transcript_file
from .spec import Annotations, Arguments, Call, Json, ToolResult, ToolSpec

if TYPE_CHECKING:
    from watchkeeper.context.core.messages import Message
    from watchkeeper.context.host import ContextAnswer
    from watchkeeper.context.transcripts import Transcript

PASSED_ON = frozenset(
    {
        "mode",
        "focus_topic",
        "current_tokens",
        "usage",
        "model",
        "context_length",
        "provider",
        "target_tokens",
        "cache_ttl",
        "session",
    }
)
"""Arguments that are the host's own, by the same names."""
PROBLEMS_SHOWN = 20
COMPRESS_LIMIT_S = 300.0
ENGINE_TOOL_LIMIT_S = 60.0
PROGRESS_EVERY_S = 0.25
SESSION_ID: Json = {"type": "string", "minLength": 1, "maxLength": 200}


async def compress(call: Call, arguments: Arguments) -> ToolResult:
    sources = [name for name in ("messages", "transcript") if name in arguments]
    if not sources and arguments.get("session") == "end":
        return await _end(call, arguments)
    if len(sources) != 1:
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
    from watchkeeper.context.host import ContextCall

    loaded = None
    if "transcript" in arguments:
        from watchkeeper.context.transcripts import load_transcript

        loaded = load_transcript(transcript_file(arguments["transcript"], call.settings))
    names = set(arguments) & PASSED_ON
    marks = {"cache_ttl": call.settings.prompt_caching.cache_ttl} if "provider" in arguments else {}

    def make_call(session_id: str) -> ContextCall:
        messages = loaded.messages if loaded is not None else arguments["messages"]
        return ContextCall(messages, session_id, **{**marks, **{name: arguments[name] for name in names}})

    answer = call.conversations.compress(
        call.principal, arguments.get("session_id"), make_call, progress=progress, cancelled=cancelled.is_set
    )
    return _shown(call, arguments, answer, loaded)


def _shown(call: Call, arguments: Arguments, answer: "ContextAnswer", loaded: "Transcript | None") -> ToolResult:
    """The answer in the form that was asked for."""
    output = arguments.get("output", "summary" if loaded is not None else "messages")
    if arguments.get("mode") in ("dry_run", "observe"):
        output = "report"
    structured: Json = {"report": answer.as_dict()}
    parts = [answer.report.render()]
    if loaded is not None and loaded.problems:
        structured["problems"] = [str(problem) for problem in loaded.problems[:PROBLEMS_SHOWN]]
        parts.append("Not everything in the transcript could be read:\n" + "\n".join(structured["problems"]))
    messages = list(answer.messages)
    if output == "messages":
        structured["messages"] = messages
        whole = json.dumps(messages, ensure_ascii=False)
        parts.append(
            render.fenced(whole, "messages") if answer.report.compressed else "Keep your messages as they are."
        )
    elif output == "summary":
        structured["summary"] = as_text(messages)
        parts.append(render.fenced(structured["summary"], "summary"))
    elif output == "file":
        structured["file"] = _written(call, messages, loaded)
        parts.append(f"Written: {structured['file']}")
    return ToolResult(render.joined(*parts), structured)


def as_text(messages: "list[Message]") -> str:
    """A compressed conversation as one text, to start afresh with; without the instructions of its system."""
    from watchkeeper.context.core.messages import INSTRUCTION_ROLES, call_arguments, call_name, calls_of, content_text

    parts = []
    for message in messages:
        if message["role"] in INSTRUCTION_ROLES:
            continue
        lines = [content_text(message.get("content"))]
        lines += [f"(called {call_name(call)} with {call_arguments(call)})" for call in calls_of(message)]
        text = "\n".join(line for line in lines if line.strip())
        if text:
            parts.append(f"[{message['role']}]\n{text}")
    return "\n\n".join(parts)


def _written(call: Call, messages: "list[Message]", loaded: "Transcript | None") -> str:
    from watchkeeper.context.transcripts import dump_transcript

    folder = allowed_folders(call.settings)[0]
    path = new_file(folder, "compressed", ".json" if loaded is None or not loaded.form.endswith("l") else ".jsonl")
    dump_transcript(messages, path, loaded.form if loaded is not None else "openai", like=loaded)
    return str(path)


async def _end(call: Call, arguments: Arguments) -> ToolResult:
    session_id = arguments.get("session_id", "default")
    ended = await anyio.to_thread.run_sync(lambda: call.conversations.host(call.principal).end(session_id))
    said = "ended" if ended else "was not known"
    return ToolResult(f"Session {render.quoted(session_id)} {said}.", {"session_id": session_id, "ended": ended})


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
        "Shrink a conversation, keeping identifiers, decisions and what people typed. Give messages (the host then "
        "replaces its history) or a transcript file; it cannot shrink your own context."
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
        "context_length": {"type": "integer", "minimum": 1000},
        "provider": {"type": "string", "maxLength": 100, "description": "Sets cache marks"},
        "cache_ttl": {"enum": ["5m", "1h"]},
        "output": {"enum": ["messages", "summary", "file"]},
        "session": {"enum": ["reset", "end"], "description": "Before, or after"},
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
            return call.conversations.call_tool(call.principal, arguments.get("session_id"), schema["name"], asked)

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

"""``watchkeeper compress FILE``: the same engine as the tool, for people and hooks.

Rules: the report goes to stderr and the result to stdout, so that the result can be piped; ``--json`` gives both in
one. The person named the file, so the allowed folders of clients do not matter here.
"""

import argparse
import json
import sys

import anyio

from ..conversations import Conversations
from ..settings import Settings
from ..tools.context import as_text

BAR = 30


def compress_file(parsed: argparse.Namespace, settings: Settings) -> int:
    """Raises: TranscriptError, ContextError, ToolError."""
    from watchkeeper.context.host import ContextCall
    from watchkeeper.context.transcripts import dump_transcript, load_transcript

    loaded = load_transcript(parsed.transcript)
    for problem in loaded.problems[:20]:
        _say(f"not read: {problem}")
    conversations = Conversations(settings)

    def make_call(session_id: str) -> ContextCall:
        return ContextCall(
            loaded.messages,
            session_id,
            mode="dry_run" if parsed.dry_run else "force",
            focus_topic=parsed.focus,
            target_tokens=parsed.target_tokens,
            model=parsed.model or "",
        )

    try:
        answer = conversations.compress("", None, make_call, progress=_bar if sys.stderr.isatty() else None)
    finally:
        anyio.run(conversations.close)
    messages = list(answer.messages)
    if parsed.output and not parsed.dry_run:
        for problem in dump_transcript(messages, parsed.output, loaded.form, like=loaded):
            _say(f"not written: {problem}")
        _say(f"written: {parsed.output}")
    if parsed.json:
        result = {"report": answer.as_dict()} | ({} if parsed.dry_run else {"messages": messages})
        sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
        return 0
    _say(answer.report.render())
    if not parsed.output and not parsed.dry_run:
        sys.stdout.write(as_text(messages) + "\n")
    return 0


def _bar(done: float, what: str) -> None:
    filled = round(BAR * done)
    end = "\n" if done >= 1 else ""
    sys.stderr.write(f"\r[{'#' * filled}{'.' * (BAR - filled)}] {what:<40.40}{end}")
    sys.stderr.flush()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")

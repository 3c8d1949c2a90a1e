"""Conversations that are being compressed: one engine each, and the tools that engines offer.

Rules: a conversation is named by its ``session_id``; those of one principal are out of the reach of others. An engine
is used by one call at a time, in a worker thread. What an engine may ask for (an archive, a summariser) is made here,
from settings. When a conversation ends (by request, because it was used least recently of too many, or with the
server), its engine is told.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from .settings import Settings

if TYPE_CHECKING:
    from watchkeeper.context import ContextEngine

BUILT_IN = "compressor"
HELD = 64
DEFAULT = "default"
ARCHIVE = "archive"
RECALL = "Its originals are in the archive; archive_grep finds and archive_expand shows them."
Messages = Sequence[dict[str, Any]]


@dataclass(slots=True)
class Conversation:
    """``messages`` are those last seen, for the engine's end of the session."""

    session_id: str
    engine: "ContextEngine"
    archive: Any = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    messages: Messages = ()

    def tools(self) -> list[dict[str, Any]]:
        """The engine's; those of the archive where the built-in engine writes to one."""
        from watchkeeper.context.archive import ArchiveTools

        recorded = self.engine.name == BUILT_IN and self.archive is not None
        return ArchiveTools.schemas_for(ARCHIVE) if recorded else self.engine.get_tool_schemas()

    def call_tool(self, name: str, arguments: dict[str, Any]) -> str:
        """JSON text; ``{"error": …}`` where it failed."""
        if self.engine.name != BUILT_IN or self.archive is None:
            return self.engine.handle_tool_call(name, arguments)
        from watchkeeper.context import estimate
        from watchkeeper.context.archive import ArchiveTools

        return ArchiveTools(self.archive, lambda: self.session_id, estimate, prefix=ARCHIVE).call(name, arguments)


class Conversations:
    """Methods block (they may open a database): call them in a worker thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._held: dict[tuple[str, str], Conversation] = {}
        self._lock = threading.Lock()

    def get(self, principal: str, session_id: str | None) -> Conversation:
        """The conversation, begun where it is new; without a name it is forgotten after the call.

        Raises: EngineError and what the engine raises at its start.
        """
        if session_id is None:
            if not self._remembers:
                return self._begun(principal, "")
            session_id = DEFAULT
        key = (principal, session_id)
        with self._lock:
            found = self._held.pop(key, None)
            if found is None:
                found = self._begun(principal, session_id)
            self._held[key] = found
            old = [self._held.pop(name) for name in list(self._held)[:-HELD]]
        for conversation in old:
            _end(conversation)
        return found

    def engine_tools(self) -> list[dict[str, Any]]:
        """``{name, description, parameters}`` of the tools that the active engine, or the archive, offers."""
        if not self._remembers:
            return []
        begun = self._begun("", "")
        try:
            return begun.tools()
        finally:
            _end(begun)

    def latest(self, principal: str) -> Conversation:
        """The conversation that this principal used last; one called ``default`` where there is none."""
        with self._lock:
            names = [name for holder, name in self._held if holder == principal]
        return self.get(principal, names[-1] if names else DEFAULT)

    def done(self, conversation: Conversation, messages: Messages) -> None:
        """A call is over: what has no name ends with it."""
        conversation.messages = messages
        if not conversation.session_id:
            _end(conversation)

    def end(self, principal: str, session_id: str) -> bool:
        """Whether there was one to end."""
        with self._lock:
            found = self._held.pop((principal, session_id), None)
        if found is not None:
            _end(found)
        return found is not None

    async def close(self) -> None:
        """Tell every engine that its session ends."""
        await anyio.to_thread.run_sync(self._close)

    def _close(self) -> None:
        with self._lock:
            held, self._held = list(self._held.values()), {}
        for conversation in held:
            _end(conversation)

    @property
    def _remembers(self) -> bool:
        """Whether conversations outlive a call by themselves: in an archive."""
        return self.settings.context.archive or self.settings.context.engine != BUILT_IN

    def _begun(self, principal: str, session_id: str) -> Conversation:
        from watchkeeper.context.discovery import load_engine
        from watchkeeper.context.windows import DEFAULT_CONTEXT_LENGTH

        name = self.settings.context.engine
        compression = self.settings.compression
        own = dict(self.settings.context.engines.get(name, {}))
        length = compression.context_length or DEFAULT_CONTEXT_LENGTH
        if name == BUILT_IN:
            own = compression.model_dump(exclude={"context_length"}) | own
            length = compression.context_length or 0  # by the model's name
        archive = self._archive(principal, str(own.get("path") or "")) if self._remembers else None
        more = {"archive": archive, "recall": RECALL} if archive is not None else {}
        engine = load_engine(
            name,
            directories=[Path(folder) for folder in self.settings.context.plugin_dirs],
            context_length=length,
            settings=own,
            summarizer=self._summarizer(),
            **more,
        )
        if session_id:
            engine.on_session_start(session_id)
        return Conversation(session_id, engine, archive)

    def _archive(self, principal: str, location: str) -> Any:
        """Each principal has a file of its own: a search of everything finds only what is theirs."""
        from watchkeeper.context.archive import default_location, open_archive

        where: str | Path = location or default_location()
        if principal and "://" not in str(where):
            where = Path(where).with_name(f"{Path(where).stem}-{principal}{Path(where).suffix}")
        return open_archive(where)

    def _summarizer(self) -> Any:
        chosen = self.settings.auxiliary.compression
        if chosen.provider == "none" or chosen.model is None:
            return None
        from watchkeeper.context.summarizers.calling import Limits

        key = chosen.api_key.get_secret_value() if chosen.api_key else None
        limits = Limits(attempt=chosen.timeout_s, total=chosen.timeout_s * 2.5)
        if chosen.provider == "openai":
            from watchkeeper.context.summarizers.openai import OpenAISummarizer

            return OpenAISummarizer(chosen.model, api_key=key, base_url=chosen.base_url, limits=limits)
        from watchkeeper.context.summarizers.anthropic import AnthropicSummarizer

        return AnthropicSummarizer(chosen.model, api_key=key, base_url=chosen.base_url, limits=limits)


def _end(conversation: Conversation) -> None:
    with conversation.lock:
        if conversation.session_id:
            conversation.engine.on_session_end(conversation.session_id, conversation.messages)
        for part in (conversation.engine, conversation.archive):
            close = getattr(part, "close", None)
            if callable(close):
                close()

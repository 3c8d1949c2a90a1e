"""Conversations that are compressed: a host of engines for each principal, and the tools that engines offer.

Rules: a conversation is named by its ``session_id``; those of one principal are out of the reach of others, in memory
and in the archive. What an engine may ask for (an archive, a summariser) is made here, from settings. A call without a
``session_id`` leaves nothing behind, unless an archive remembers: then it belongs to the conversation ``default``.
"""

import secrets
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from . import archives
from .archives import BUILT_IN
from .settings import Settings

if TYPE_CHECKING:
    from watchkeeper.context.archive import Archive
    from watchkeeper.context.engine import ContextEngine
    from watchkeeper.context.host import ContextAnswer, ContextCall, ContextHost

ARCHIVE = "archive"
KEPT = "browser"
"""What the names of conversations begin with that hold results, and no messages."""
TASK_NAMED = 100
RECALL = "Its originals are in the archive; archive_grep finds and archive_expand shows them."


class Conversations:
    """Methods that are not coroutines block (they may open a database): call them in a worker thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._hosts: dict[str, ContextHost] = {}
        self._archives: dict[str, Archive] = {}
        self._closing: list[Callable[[], None]] = []
        self._lock = threading.RLock()

    def compress(
        self,
        principal: str,
        session_id: str | None,
        make_call: "Callable[[str], ContextCall]",
        *,
        progress: Callable[[float, str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> "ContextAnswer":
        """One call of a conversation; ``make_call`` gets the name that it has here. Raises ContextError."""
        host = self.host(principal)
        passing = session_id is None and not self._remembers
        name = f"call-{secrets.token_hex(8)}" if passing else session_id or "default"
        try:
            return host.handle(make_call(name), progress=progress, cancelled=cancelled)
        finally:
            if passing:
                host.end(name)

    def host(self, principal: str) -> "ContextHost":
        """The principal's engines and their sessions."""
        from watchkeeper.context.host import ContextHost

        with self._lock:
            if principal not in self._hosts:
                self._hosts[principal] = ContextHost(lambda: self._engine(principal))
            return self._hosts[principal]

    def tools(self, taken: Collection[str] = ()) -> list[dict[str, Any]]:
        """``{name, description, parameters}`` of what the active engine offers, or the archive beside it.

        Raises: UnknownEngine, EngineFailed when the chosen engine cannot be loaded, or has a tool of a ``taken`` name.
        """
        if not self._remembers:
            return []
        if self.settings.context.engine == BUILT_IN:
            from watchkeeper.context.archive import ArchiveTools

            return ArchiveTools.schemas_for(ARCHIVE)
        from watchkeeper.context.discovery import check_tools

        return check_tools(self._engine(""), taken)

    def call_tool(self, principal: str, session_id: str | None, name: str, arguments: dict[str, Any]) -> str:
        """JSON text; ``{"error": …}`` where it failed. Without a name: the conversation that was used last."""
        host = self.host(principal)
        session = session_id or next(reversed(host.sessions()), "default")
        if self.settings.context.engine != BUILT_IN:
            return host.call_tool(session, name, arguments)
        from watchkeeper.context import estimate
        from watchkeeper.context.archive import ArchiveTools

        return ArchiveTools(self._archive(principal), lambda: session, estimate, prefix=ARCHIVE).call(name, arguments)

    def keep(self, principal: str, task_id: str, text: str, done: str) -> tuple[str, str] | None:
        """Archive a result that is too long to be shown: its handle, and the tool that gives it back; None where
        nothing could.

        Kept by day and task, apart from what is compressed: it is no message of any conversation, and ends sooner.
        Raises: ArchiveError.
        """
        tool = archives.expand_tool(self.settings)
        if not tool:
            return None
        task = "".join(sign if sign.isprintable() else "?" for sign in task_id[:TASK_NAMED])
        session = f"{KEPT} {time.strftime('%Y-%m-%d', time.gmtime())} {task}"
        return self._archive(principal).record_text(session, text, call=done), tool

    def kept(self, principal: str, most: int) -> list[str]:
        """Handles of what ``keep`` archived, the newest first; empty where there is no archive. Raises ArchiveError."""
        if not archives.expand_tool(self.settings):
            return []
        archive, found = self._archive(principal), list[str]()
        for session in archive.sessions():
            if session.name.startswith(f"{KEPT} "):
                newest = archive.handles(session.name, max(0, session.messages - most + len(found)))
                found += [newest[position] for position in sorted(newest, reverse=True)]
            if len(found) >= most:
                break
        return found[:most]

    def archived_sessions(self, principal: str) -> list[str]:
        """Names of the conversations in the archive, the newest first. Raises ArchiveError."""
        if not archives.expand_tool(self.settings):
            return []
        return [session.name for session in self._archive(principal).sessions()]

    async def close(self) -> None:
        """Tell every engine that its sessions end, and close the archives."""
        await anyio.to_thread.run_sync(self._close)

    def _close(self) -> None:
        with self._lock:
            for host in self._hosts.values():
                host.close()
            for close in (*self._closing, *(archive.close for archive in self._archives.values())):
                close()
            self._hosts, self._archives, self._closing = {}, {}, []

    @property
    def _remembers(self) -> bool:
        """Whether conversations outlive the process."""
        return self.settings.context.archive or self.settings.context.engine != BUILT_IN

    def _engine(self, principal: str) -> "ContextEngine":
        from watchkeeper.context.discovery import load_engine
        from watchkeeper.context.windows import DEFAULT_CONTEXT_LENGTH

        name = self.settings.context.engine
        compression = self.settings.compression
        own = dict(self.settings.context.engines.get(name, {}))
        more: dict[str, Any] = {}
        if name == BUILT_IN:
            own = compression.model_dump(exclude={"context_length"}) | own
            own.pop("path", None)  # the archive's
            length = compression.context_length or 0  # by the model's name
            if self.settings.context.archive:
                more = {"archive": self._archive(principal), "recall": RECALL}
        else:
            length = compression.context_length or DEFAULT_CONTEXT_LENGTH
            if principal or name in archives.EXPAND_TOOLS:  # any other may open one that its settings name
                more = {"archive": self._archive(principal)}
        engine = load_engine(
            name,
            directories=[Path(folder) for folder in self.settings.context.plugin_dirs],
            context_length=length,
            settings=own,
            summarizer=self._summarizer(),
            **more,
        )
        close = getattr(engine, "close", None)
        if callable(close):
            self._closing.append(close)
        return engine

    def _archive(self, principal: str) -> "Archive":
        """Where the principal's originals are kept."""
        with self._lock:
            if principal not in self._archives:
                archive = archives.opened(self.settings, principal)
                self._archives[principal] = archives.retained(archive, self.settings)
            return self._archives[principal]

    def _summarizer(self) -> Any:
        chosen = self.settings.auxiliary.compression
        if chosen.provider == "none" or chosen.model is None:  # settings see to the latter
            return None
        from watchkeeper.context.summarizers.calling import Limits

        key = chosen.api_key.get_secret_value() if chosen.api_key else None
        limits = Limits(attempt=chosen.timeout_s, total=chosen.timeout_s * 2.5)
        if chosen.provider == "openai":
            from watchkeeper.context.summarizers.openai import OpenAISummarizer

            return OpenAISummarizer(chosen.model, api_key=key, base_url=chosen.base_url, limits=limits)
        from watchkeeper.context.summarizers.anthropic import AnthropicSummarizer

        return AnthropicSummarizer(chosen.model, api_key=key, base_url=chosen.base_url, limits=limits)

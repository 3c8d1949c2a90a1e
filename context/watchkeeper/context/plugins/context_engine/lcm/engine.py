"""The lossless engine: an immutable archive of every message, and an active context of summaries and raw messages.

Rules:
- Nothing is condensed before it is archived; every summary expands to the messages it stands for.
- Above the soft threshold summaries are made in the background; they take effect, all at once, at the next `compress`.
  Above the hard one `compress` makes them itself and waits.
- What is returned is smaller than what came in and valid for all providers; else the same list comes back. If it cannot
  be brought below the hard threshold, a warning says so.
- State is in the archive under the session's id and survives a restart.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from watchkeeper.context.archive import Archive, ArchiveTools, default_location, open_archive
from watchkeeper.context.core.messages import INSTRUCTION_ROLES, check_messages, content_text
from watchkeeper.context.core.repair import repair
from watchkeeper.context.core.validity import has_thinking
from watchkeeper.context.engine import ContextEngine, Progress, Usage
from watchkeeper.context.errors import Cancelled, InvalidArgument
from watchkeeper.context.redact import redact
from watchkeeper.context.summarizers.port import Summarizer
from watchkeeper.context.tokens import estimate, message_tokens, tokenizer_for, total_tokens

from .condense import Brief, cut_to
from .dag import Item, fresh_start
from .follow import Follower, Message, Placed
from .grow import LEAST_LEAF, Grower
from .settings import LcmSettings
from .show import aside_id, aside_message, summary_message, worth_setting_aside

_log = logging.getLogger(__name__)

_LATEST_TOKENS = 4_000
_MEMORY = 6_000


def _never() -> bool:
    return False


def _quiet(_share: float, _what: str) -> None:
    """For hosts that do not want to know."""


class LcmEngine(ContextEngine):
    """See the module.

    Args:
        context_length: of the model, in tokens.
        settings: see `LcmSettings`.
        archive: where originals go; the default is the file that `settings["path"]` or the data directory names.
        summarizer: a model that adds to the extractive floor; None for none.
        model: whose tokens are counted.
    """

    def __init__(
        self,
        context_length: int = 200_000,
        settings: Mapping[str, Any] | None = None,
        *,
        archive: Archive | None = None,
        summarizer: Summarizer | None = None,
        model: str = "",
    ) -> None:
        self.settings = LcmSettings.read(settings or {})
        self._archive = archive
        self._own_archive = archive is None
        self._summarizer = summarizer
        self._count = tokenizer_for(model).count
        self._session = ""
        self._follower: Follower | None = None
        self._lock = threading.RLock()
        self._background: threading.Thread | None = None
        self._stop = threading.Event()
        self._ready = False
        self._held_grower: Grower | None = None
        self.last_failure = ""
        self.last_repairs: tuple[str, ...] = ()
        self.update_model(model, context_length)

    @property
    def name(self) -> str:
        return "lcm"

    @property
    def archive(self) -> Archive:
        """The archive; opened when first needed."""
        with self._lock:
            if self._archive is None:
                self._archive = open_archive(self.settings.path or default_location())
            return self._archive

    # --- what the host tells

    def update_model(
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """See `ContextEngine.update_model`."""
        if context_length <= 0:
            raise InvalidArgument(f"context_length must be above 0, not {context_length}", "give the model's window")
        self.context_length = context_length
        self.threshold_percent = self.settings.hard
        self.threshold_tokens = int(context_length * self.threshold_percent)
        self._count = tokenizer_for(model).count

    def update_from_response(self, usage: Usage) -> None:
        """See `ContextEngine.update_from_response`."""
        self.last_prompt_tokens = int(usage.get("prompt_tokens") or 0)
        self.last_completion_tokens = int(usage.get("completion_tokens") or 0)
        self.last_total_tokens = int(usage.get("total_tokens") or self.last_prompt_tokens + self.last_completion_tokens)

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """Take up a conversation. With `boundary_reason="compression"` it goes on under the new id."""
        with self._lock:
            self._wait()
            old = str(kwargs.get("old_session_id") or "")
            if kwargs.get("boundary_reason") == "compression" and old and self._session == old and self._follower:
                if self.archive.store.rename(self._follower.name, session_id):
                    self._session = self._follower.session = self._follower.name = session_id
                return
            self._session = session_id
            self._retain()
            self._follower = None
            self._ready = False
            self._held_grower = None

    def _retain(self) -> None:
        days, megabytes = self.settings.keep_days or None, self.settings.keep_megabytes or None
        if days is not None or megabytes is not None:
            ours = [s.name for s in self.archive.sessions() if s.name.partition(" #")[0] == self._session]
            for name in self.archive.retain(days=days, megabytes=megabytes, but=ours):
                _log.info("lcm: deleted the conversation %s, as keep_days and keep_megabytes say", redact(name))

    def on_session_end(self, session_id: str, messages: Sequence[Message]) -> None:
        """Record the rest and let the background finish or stop."""
        with self._lock:
            if messages and session_id in ("", self._session):
                self._following().follow(check_messages(messages))
        self._stop.set()
        self._wait()
        self._stop.clear()

    def on_session_reset(self) -> None:
        """A new conversation; what was is still in the archive."""
        with self._lock:
            self._stop.set()
            self._wait()
            self._stop.clear()
            super().on_session_reset()
            if self._follower is not None:
                self._follower.restart()
            self._ready = False
            self._held_grower = None

    def on_turn_complete(self, messages: Sequence[Message], usage: Usage | None = None, **kwargs: Any) -> None:
        """Record the turn; above the soft threshold begin to condense in the background."""
        if usage:
            self.update_from_response(usage)
        with self._lock:
            checked = check_messages(messages)
            placed = self._following().follow(checked)
            used = self.last_prompt_tokens or self._total(placed)
            if used >= self._soft() and self.settings.background and self._background is None:
                self._background = threading.Thread(target=self._prepare, args=(self._following().name,), daemon=True)
                self._background.start()

    # --- deciding

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Above the hard threshold, or above the soft one when summaries are ready."""
        used = prompt_tokens if prompt_tokens is not None else self.last_prompt_tokens
        return used >= self.threshold_tokens or (self._ready and used >= self._soft())

    def should_compress_preflight(self, messages: Sequence[Message]) -> bool:
        """By an estimate."""
        return self.should_compress(total_tokens(messages, estimate))

    def has_content_to_compress(self, messages: Sequence[Message]) -> bool:
        """Whether there is anything outside the fresh tail."""
        items = [
            Item(n, str(m.get("role")), message_tokens(m, estimate), has_thinking(m)) for n, m in enumerate(messages)
        ]
        talk = [item for item in items if item.role not in INSTRUCTION_ROLES]
        start = fresh_start(talk, self._fresh())
        return start > 0 and sum(item.tokens for item in talk if item.position < start) >= LEAST_LEAF

    # --- compressing

    def compress(
        self,
        messages: list[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
        *,
        cancelled: Callable[[], bool] | None = None,
        progress: Progress | None = None,
    ) -> list[Message]:
        """The active context: instructions, one message of summaries, raw messages. The same list if nothing was due.

        Raises:
            InvalidMessages, Cancelled, ArchiveError
        """
        checked = check_messages(messages)
        cancelled = cancelled or _never
        tell = progress or _quiet
        with self._lock:
            before = total_tokens(checked, estimate)
            used = current_tokens or before
            if not force and not self.should_compress(used):
                return messages
            placed = self._following().follow(checked)
            tell(0.1, "recorded")
            self._wait(cancelled)
            brief = Brief(self._count, self._summarizer, focus_topic, redact(memory_context)[:_MEMORY], cancelled)
            out = self._fitted(placed, brief, tell, squeeze=force)
            if out is None or total_tokens([m for m, _ in out], estimate) >= before:
                return messages
            result, repairs = repair([m for m, _ in out])
            if (size := total_tokens(result, estimate)) > self.threshold_tokens:
                _log.warning("lcm: about %d tokens are left, above the threshold of %d", size, self.threshold_tokens)
            self.last_repairs = tuple(map(str, repairs))
            self._remember(out, result)
            self._ready = False
            self.compression_count += 1
            return result

    def _fitted(
        self, placed: list[Placed], brief: Brief, tell: Progress, *, squeeze: bool
    ) -> list[tuple[Message, int | None]] | None:
        """Condense until the context fits; each step gives up a little more rawness."""
        goal = int(self.threshold_tokens * self.settings.goal)
        fresh, aside = self._fresh(), self.settings.large_tokens
        name = self._following().name
        grower = self._grower(name)
        out: list[tuple[Message, int | None]] | None = None
        for step in range(12):
            if brief.cancelled():
                raise Cancelled
            self._tell(grower.grow(fresh, brief, remainder=squeeze or step > 0))
            tell(min(0.9, 0.5 + step / 10), "condensed")
            out = self._assembled(placed, name, aside)
            if out is None or total_tokens([m for m, _ in out], estimate) <= goal:
                break
            squeeze = True
            fresh //= 2
            if step >= 2:
                aside = max(200, aside // 3)
                self._tell(grower.merge_half(brief))
        return out

    def _assembled(self, placed: list[Placed], name: str, aside: int) -> list[tuple[Message, int | None]] | None:
        """Instructions, summaries, and what comes after them; None if there are no summaries."""
        roots = self.archive.store.roots(name)
        if not roots:
            return None
        covered = roots[-1].last
        head: list[tuple[Message, int | None]] = []
        tail: list[tuple[Message, int | None]] = []
        for item in placed:
            if item.position is None:
                continue
            if item.message.get("role") in INSTRUCTION_ROLES and not tail and item.position < roots[0].first:
                head.append((item.message, item.position))
            elif item.position > covered:
                tail.append((self._aside(name, item, aside), item.position))
        latest = "" if any(m.get("role") == "user" for m, _ in tail) else self._latest_request(name, covered)
        summary: tuple[Message, int | None] = (summary_message(roots, latest), None)
        return [*head, summary, *tail]

    def _aside(self, name: str, item: Placed, limit: int) -> Message:
        tokens = message_tokens(item.message, estimate)
        if tokens <= limit or item.position is None or not worth_setting_aside(item.message):
            return item.message
        for stored in self.archive.store.messages(name, item.position, item.position):
            return aside_message(stored, tokens)
        return item.message

    def _latest_request(self, name: str, before: int) -> str:
        """The last thing the person typed, for a tail without it."""
        at = before
        while at >= 0:
            for stored in reversed(list(self.archive.store.messages(name, max(0, at - 99), at))):
                if stored.role == "user":
                    text = content_text(stored.message().get("content"))
                    return cut_to(text, min(_LATEST_TOKENS, self.context_length // 16), self._count)
            at -= 100
        return ""

    def _remember(self, out: list[tuple[Message, int | None]], result: list[Message]) -> None:
        """What a repair changed stands for what it was made of (the last, if several); what it put in, for nothing."""
        follower = self._following()
        place = {id(message): at for at, (message, _) in enumerate(out)}
        changed: list[Message] = []
        start = 0
        for message in [*result, None]:
            at = len(out) if message is None else place.get(id(message), -1)
            if at < 0 and message is not None:
                changed.append(message)
                continue
            between = [position for _, position in out[start:at]]
            for number, made in enumerate(changed, len(between) - len(changed)):
                follower.remember(made, between[number] if number >= 0 else None)
            if message is not None and (out[at][1] is None or aside_id(message)):
                follower.remember(message, out[at][1])
            changed, start = [], at + 1

    # --- in the background

    def _grower(self, name: str) -> Grower:
        if self._held_grower is None or self._held_grower.name != name:
            self._held_grower = Grower(self.archive.store, name)
        self._held_grower.leaf_tokens = min(self.settings.leaf_tokens, max(LEAST_LEAF, self.context_length // 8))
        self._held_grower.node_tokens = self.settings.node_tokens
        self._held_grower.fanout = self.settings.fanout
        return self._held_grower

    def _tell(self, failures: tuple[str, ...]) -> None:
        for failure in failures:
            self.last_failure = failure
            _log.warning("lcm: a model's summary is missing, the extractive one stands: %s", failure)

    def _prepare(self, name: str) -> None:
        """In the background: what the next `compress` would have to do."""
        try:
            brief = Brief(self._count, self._summarizer, cancelled=self._stop.is_set)
            self._tell(self._grower(name).grow(self._fresh(), brief, remainder=False))
            self._ready = True
        except Cancelled:
            return
        except Exception as error:  # noqa: BLE001 - nobody waits for this thread; the next compress meets it again
            self.last_failure = redact(f"{type(error).__name__}: {error}")[:200]
            _log.warning("lcm: condensing in the background failed: %s", self.last_failure)

    def _wait(self, cancelled: Callable[[], bool] | None = None) -> None:
        thread = self._background
        while thread is not None and thread.is_alive():
            thread.join(0.05)
            if cancelled is not None and cancelled():
                raise Cancelled
        self._background = None

    # --- sizes

    def _soft(self) -> int:
        return int(self.threshold_tokens * self.settings.soft)

    def _fresh(self) -> int:
        return self.settings.fresh_tokens or min(24_000, self.context_length // 8)

    def _total(self, placed: list[Placed]) -> int:
        return total_tokens([item.message for item in placed], estimate)

    def _following(self) -> Follower:
        if self._follower is None:
            self._session = self._session or f"conversation {uuid.uuid4()}"
            self._follower = Follower(self.archive, self._session)
        return self._follower

    # --- tools and status

    def _tools(self) -> ArchiveTools:
        return ArchiveTools(self.archive, lambda: self._following().name, self._count)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """lcm_grep, lcm_describe, lcm_expand."""
        return ArchiveTools.schemas_for("lcm")

    def handle_tool_call(self, name: str, args: Mapping[str, Any], **kwargs: Any) -> str:
        """See `ContextEngine.handle_tool_call`."""
        if name not in {schema["name"] for schema in self.get_tool_schemas()}:
            return json.dumps({"error": f"Unknown tool: {name}"})
        return self._tools().call(name, args)

    def get_status(self) -> dict[str, Any]:
        """The standard fields, and what the archive holds of this conversation."""
        status = dict(super().get_status())
        if self._follower is not None:
            roots = self.archive.store.roots(self._follower.name)
            status["lcm"] = {
                "conversation": self._follower.name,
                "summaries": len(roots),
                "depth": max((root.depth for root in roots), default=0),
                "messages_condensed": sum(root.last - root.first + 1 for root in roots),
                "ready": self._ready,
                "last_failure": self.last_failure,
            }
        return status

    def close(self) -> None:
        """Stop the background, and close the archive if it was opened here. Idempotent."""
        self._stop.set()
        self._wait()
        if self._archive is not None and self._own_archive:
            self._archive.close()

"""ContextCompressor: the built-in engine. When to compact, with which budgets, and what to remember in between.

Rules:
- After a response: compact at `threshold` of the window, by real token counts. Before a request: at 85% of it
  (hygiene), by the last real count or an estimate.
- Two compactions in a row that save under 10%, as the next real count shows, pause automatic compaction for 300 s.
- State hangs on the session id. A compaction that is cancelled, fails or changes nothing leaves it as it was.
- Nothing leaves the machine unless a summariser was handed in; what it gets is redacted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from watchkeeper.context.core.budget import HYGIENE_MESSAGES, Budgets, budgets, hygiene_tokens, threshold_tokens
from watchkeeper.context.core.messages import Message, check_messages, content_text
from watchkeeper.context.core.pruning import RERUN, Recover, prune
from watchkeeper.context.core.record import take_out
from watchkeeper.context.core.regions import regions
from watchkeeper.context.core.repair import repair
from watchkeeper.context.engine import ContextEngine, Progress, Usage
from watchkeeper.context.engines.compaction import Memory, Order, Outcome, compact, text_characters
from watchkeeper.context.engines.settings import CompressorSettings, settings_from
from watchkeeper.context.engines.view import View
from watchkeeper.context.errors import ContextError, InvalidArgument
from watchkeeper.context.redact import redact as redact_secrets
from watchkeeper.context.report import Report
from watchkeeper.context.summarizers.port import Summarizer
from watchkeeper.context.tokens import estimate, tokenizer_for, total_tokens
from watchkeeper.context.windows import context_length_for

INEFFECTIVE: Final = 0.10
"""A compaction that saves less than this share counts against automatic compaction."""
PAUSE_AFTER: Final = 2
PAUSE_SECONDS: Final = 300.0
PRUNE_LONGER_THAN: Final = 8_000
PRUNE_LEAST_SAVED: Final = 4_096
REMEMBERED: Final = 4_000_000
"""Characters of originals that a session keeps in memory; with more, the record itself is read again."""
SESSIONS: Final = 64
"""Sessions whose state is kept; the one used least recently goes first."""


class Recorder(Protocol):
    """Where originals are archived, as far as the compressor needs it (`watchkeeper.context.archive.Archive`)."""

    def record(self, session: str, messages: Sequence[Mapping[str, Any]]) -> list[int]: ...

    def handles(self, session: str, first: int = 0, last: int | None = None) -> dict[int, str]: ...


@dataclass(slots=True)
class _Session:
    memory: Memory = field(default_factory=Memory)
    compactions: int = 0
    before: int | None = None  # real count before the last compaction; None once the next count has judged it
    ineffective: int = 0
    paused_until: float = 0.0


class ContextCompressor(ContextEngine):
    """The default engine: prunes, keeps what will be needed, summarises, re-assembles.

    Args:
        context_length: window of the model in tokens; by the model's name, else 200,000.
        settings: `compression.*` by name.
        model: for token counts and the window.
        summarizer: a model-based summariser; without one the record is extractive.
        redact: takes secrets out of what a summariser gets.
        archive: records the originals before they leave the conversation.
        recall: one line in the record that says how archived originals are found.
        clock: monotonic seconds.

    Raises:
        InvalidArgument: a setting that is unknown or out of range.
    """

    def __init__(
        self,
        context_length: int | None = None,
        settings: Mapping[str, Any] | CompressorSettings | None = None,
        *,
        model: str = "",
        summarizer: Summarizer | None = None,
        redact: Callable[[str], str] = redact_secrets,
        archive: Recorder | None = None,
        recall: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings if isinstance(settings, CompressorSettings) else settings_from(settings or {})
        self.threshold_percent = self.settings.threshold
        self.protect_last_n = self.settings.protect_last_n
        self.summarizer = summarizer
        self.archive = archive
        self.recall = recall
        self.last_report: Report | None = None
        self._redact = redact
        self._clock = clock
        self._model = model
        self._session_id = ""
        self._sessions: dict[str, _Session] = {}
        self.update_model(model, context_length or 0)

    @property
    def name(self) -> str:
        return "compressor"

    @property
    def _session(self) -> _Session:
        state = self._sessions.pop(self._session_id, None) or _Session()
        self._sessions[self._session_id] = state
        while len(self._sessions) > SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return state

    # --- life

    def update_model(
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """Set model, window and threshold. A length of 0 is looked up by the model's name."""
        if context_length < 0:
            raise InvalidArgument(f"context_length is {context_length}", "it is a number of tokens, or 0 to look it up")
        self._model = model
        self.context_length = context_length or context_length_for(model)
        self.threshold_tokens = threshold_tokens(self.context_length, self.settings.threshold)

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """Make `session_id` the current one; when a session rotates, its state goes along."""
        old = kwargs.get("old_session_id")
        if kwargs.get("boundary_reason") == "compression" and isinstance(old, str) and old in self._sessions:
            self._sessions[session_id] = self._sessions.pop(old)
        if session_id != self._session_id:
            self.last_prompt_tokens = self.last_completion_tokens = self.last_total_tokens = 0
        self._session_id = session_id
        self.compression_count = self._session.compactions

    def on_session_end(self, session_id: str, messages: Sequence[Message]) -> None:
        """Forget the session's state."""
        self._sessions.pop(session_id, None)

    def on_session_reset(self) -> None:
        """Counters to zero, and the earlier summary forgotten."""
        super().on_session_reset()
        self._sessions.pop(self._session_id, None)

    def update_from_response(self, usage: Usage) -> None:
        """Take the provider's counts; the first after a compaction judges it."""
        self.last_prompt_tokens = _tokens(usage, "prompt_tokens", "input_tokens")
        self.last_completion_tokens = _tokens(usage, "completion_tokens", "output_tokens")
        total = _tokens(usage, "total_tokens")
        self.last_total_tokens = total or self.last_prompt_tokens + self.last_completion_tokens
        state = self._session
        if state.before is not None and self.last_prompt_tokens:
            self._judge(state, 1 - self.last_prompt_tokens / max(1, state.before))

    def _judge(self, state: _Session, saved: float) -> None:
        state.before = None
        state.ineffective = state.ineffective + 1 if saved < INEFFECTIVE else 0
        if state.ineffective >= PAUSE_AFTER:
            state.paused_until = self._clock() + PAUSE_SECONDS
            state.ineffective = 0

    # --- when

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return self.should_compress_info(prompt_tokens)[0]

    def should_compress_info(self, prompt_tokens: int | None = None) -> tuple[bool, str]:
        if not self.settings.enabled:
            return False, "automatic compaction is off (compression.enabled)"
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        if (left := self._session.paused_until - self._clock()) > 0:
            return False, f"the last compactions saved under 10%; automatic compaction is paused for {left:.0f} s"
        if tokens < self.threshold_tokens:
            return False, f"{tokens:,} tokens are below the threshold of {self.threshold_tokens:,}"
        return True, f"{tokens:,} tokens have reached the threshold of {self.threshold_tokens:,}"

    def should_compress_preflight(self, messages: Sequence[Message]) -> bool:
        """Session hygiene: at 85% of the window, from four messages on, by the last real count or an estimate."""
        if not self.settings.enabled or len(messages) < HYGIENE_MESSAGES or self._session.paused_until > self._clock():
            return False
        limit = hygiene_tokens(self.context_length)
        if self.last_prompt_tokens:
            return self.last_prompt_tokens >= limit
        return total_tokens(messages, estimate) >= limit

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        """The provider's count is trusted whenever there is one since the last compaction."""
        return self.last_prompt_tokens > 0

    def has_content_to_compress(self, messages: Sequence[Message]) -> bool:
        """Whether something lies between head and tail, or would be cut or cleared in them."""
        checked = take_out(repair(check_messages(messages))[0]).messages
        limits = self._budgets(None)
        view = View(
            checked,
            limits,
            lean=self.settings.tail_mode == "lean",
            count=tokenizer_for(self._model).count,
            recover=lambda index: RERUN,
        )
        cut = regions(checked, protect_first_n=self.protect_first_n, budgets=limits, size=view.size)
        view.kept(range(cut.tail, len(checked)))
        view.head(cut.head)
        return bool(cut.summarised or view.changes)

    # --- compacting

    def compress(
        self,
        messages: list[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
        *,
        target_tokens: int | None = None,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> list[Message]:
        """A shorter history; what was done is in `last_report`.

        Args beyond those of the base class:
            target_tokens: a cap on the whole result; overrides every floor.
            progress: called with the share done and what is being done.
            cancelled: asked now and then; true ends the run with `Cancelled`, and nothing has changed.

        Raises:
            InvalidMessages: the list has the wrong shape.
            InvalidArgument: another argument cannot be used.
            Cancelled: as asked.
        """
        started = self._clock()
        state = self._session
        if not force and target_tokens is None and not self.settings.enabled:
            return self._refused(messages, "compaction is off (compression.enabled); force overrides it")
        if not force and target_tokens is None and state.paused_until > self._clock():
            return self._refused(messages, self.should_compress_info(self.threshold_tokens)[1])
        order = self._order(messages, focus_topic, memory_context, target_tokens, progress, cancelled)
        warnings: list[str] = []
        order = self._archived(order, warnings)
        outcome = compact(order)
        report = replace(
            outcome.report,
            reported_tokens=current_tokens,
            warnings=(*outcome.report.warnings, *warnings),
            archived=self.archive is not None and not warnings,
            duration_ms=(self._clock() - started) * 1000,
        )
        self.last_report = report
        if report.compressed:
            self._remember(state, outcome, current_tokens)
        elif not force and target_tokens is None:
            self._judge(state, 0.0)  # due, and nothing could be saved: it would be due again at once
        order.progress(1.0, "done")
        return messages if outcome.messages is order.messages else outcome.messages

    def preview(
        self, messages: list[Message], *, focus_topic: str | None = None, target_tokens: int | None = None
    ) -> Report:
        """What `compress` would do, with the extractive floor; nothing is archived, remembered or sent."""
        started = self._clock()
        order = self._order(messages, focus_topic, "", target_tokens, None, None)
        report = compact(replace(order, summarizer=None)).report
        return replace(report, compressed=False, dry_run=True, duration_ms=(self._clock() - started) * 1000)

    def _order(
        self,
        messages: list[Message],
        focus_topic: str | None,
        memory_context: str,
        target_tokens: int | None,
        progress: Progress | None,
        cancelled: Callable[[], bool] | None,
    ) -> Order:
        checked = check_messages(messages)
        order = Order(
            messages=checked,
            budgets=self._budgets(target_tokens),
            context_length=self.context_length,
            threshold=self.threshold_tokens,
            tokenizer=tokenizer_for(self._model),
            lean=self.settings.tail_mode == "lean",
            protect_first_n=self.protect_first_n,
            memory=self._session.memory,
            summarizer=self.summarizer,
            redact=self._redact,
            focus_topic=focus_topic or None,
            memory_context=memory_context,
        )
        if progress is not None:
            order = replace(order, progress=progress)
        return order if cancelled is None else replace(order, cancelled=cancelled)

    def _budgets(self, target_tokens: int | None) -> Budgets:
        if target_tokens is not None and (isinstance(target_tokens, bool) or not isinstance(target_tokens, int)):
            raise InvalidArgument(f"target_tokens is {target_tokens!r:.40}", "it is a whole number of tokens")
        return budgets(
            mode=self.settings.tail_mode,
            context_length=self.context_length,
            threshold=self.threshold_tokens,
            target_ratio=self.settings.target_ratio,
            protect_last_n=self.settings.protect_last_n,
            target_tokens=target_tokens,
        )

    def _archived(self, order: Order, warnings: list[str]) -> Order:
        """The order with handles of the archived originals; without them, and a warning, if archiving fails."""
        recover = self._recovery(order.messages, warnings)
        return order if recover is None else replace(order, recover=recover, recall=self.recall)

    def _recovery(self, messages: list[Message], warnings: list[str]) -> Recover | None:
        """Archive the originals; how each is got back, by index. None, and a warning, if there is no archive for it."""
        if self.archive is None:
            return None
        session = self._session_id or "default"
        stripped = take_out(messages)
        places = {index: place for place, index in enumerate(stripped.origin)}
        try:
            positions = self.archive.record(session, stripped.messages)
            handles = self.archive.handles(session)
        except ContextError as error:
            warnings.append(f"the originals could not be archived: {error.message}")
            return None

        def recover(index: int) -> str:
            handle = handles.get(positions[places[index]]) if index in places else None
            return f"the whole of it is in the archive as {handle}" if handle else RERUN

        return recover

    def _remember(self, state: _Session, outcome: Outcome, current_tokens: int | None) -> None:
        memory = outcome.memory
        if text_characters(memory.originals) > REMEMBERED:
            memory = replace(memory, originals=())
        state.memory = memory
        state.compactions += 1
        self.compression_count = state.compactions
        # The counts of before the compaction say nothing about what comes after it.
        state.before = current_tokens or self.last_prompt_tokens or outcome.report.tokens_before
        self.last_prompt_tokens = 0

    def _refused(self, messages: list[Message], reason: str) -> list[Message]:
        checked = check_messages(messages)
        tokenizer = tokenizer_for(self._model)
        size = total_tokens(checked, tokenizer.count)
        self.last_report = Report(
            compressed=False,
            reason=reason,
            tokens_before=size,
            tokens_after=size,
            tokenizer=tokenizer.label,
            threshold_tokens=self.threshold_tokens,
            context_length=self.context_length,
            messages_before=len(checked),
            messages_after=len(checked),
        )
        return messages

    # --- other ways

    def prune_tool_results_only(
        self, messages: list[Message], current_tokens: int | None = None
    ) -> tuple[list[Message], int]:
        """Clear old results over 8,000 characters in one step, if that saves at least 4,096 tokens.

        With `compression.prune_threshold` set and `current_tokens` below it nothing is done. The newest
        `protect_last_n` messages stay as they are.
        """
        checked = check_messages(messages)
        limit = self.settings.prune_threshold
        if limit is not None and current_tokens is not None and current_tokens < limit:
            return messages, 0
        stop = max(0, len(checked) - self.protect_last_n)
        pruned = prune(checked, stop=stop, longer_than=PRUNE_LONGER_THAN)
        count = tokenizer_for(self._model).count
        saved = sum(
            count(content_text(checked[i].get("content"))) - count(content_text(pruned.messages[i].get("content")))
            for i in pruned.changed
        )
        if saved < PRUNE_LEAST_SAVED:
            return messages, 0
        recover = self._recovery(checked, [])
        if recover is not None:
            pruned = prune(checked, stop=stop, longer_than=PRUNE_LONGER_THAN, recover=recover)
        return pruned.messages, len(pruned.changed)

    def select_context(
        self,
        request_messages: list[Message],
        *,
        conversation_messages: Sequence[Message] | None = None,
        incoming_message: Message | None = None,
        budget_tokens: int = 0,
    ) -> list[Message] | None:
        """A view within `budget_tokens` for this request; None when the messages fit or no budget is given."""
        if budget_tokens <= 0:
            return None
        order = self._order(request_messages, None, "", budget_tokens, None, None)
        outcome = compact(replace(order, summarizer=None))
        return outcome.messages if outcome.report.compressed else None

    def get_status(self) -> dict[str, Any]:
        paused = max(0.0, self._session.paused_until - self._clock())
        return super().get_status() | {
            "enabled": self.settings.enabled,
            "tail_mode": self.settings.tail_mode,
            "summarizer": self.summarizer.name if self.summarizer else "extractive",
            "paused_seconds": round(paused, 1),
        }


def _tokens(usage: Usage, *keys: str) -> int:
    for key in keys:
        value = usage.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0


__all__ = ["ContextCompressor", "Recorder"]

"""ContextEngine: what a host asks of whatever manages a conversation's context.

Rules:
- Five members are required; every other hook has a default, so that an engine implements what it cares about.
- Selecting and compressing are separate: `select_context` serves one request, `compress` rewrites history.
- Engines are synchronous; hosts run them in a worker thread. A list that comes in is never mutated.
- A host passes optional arguments only to engines whose signature takes them (`watchkeeper.context.host`), so that an
  engine written for an older interface keeps working. Keys and arguments are added, never removed.

Lifecycle: instantiate, `on_session_start`; after each response `update_from_response`; after each turn
`should_compress`, and `compress` when it is true; at the real end `on_session_end`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from .core.messages import Message

Usage = Mapping[str, Any]
"""`prompt_tokens`, `completion_tokens`, `total_tokens` always; optionally `input_tokens`, `output_tokens`,
`cache_read_tokens`, `cache_write_tokens`, `reasoning_tokens`."""

Progress = Callable[[float, str], None]
"""Called with the share done (0 to 1) and what is being done, from the thread that the engine runs in."""


class ContextEngine(ABC):
    """The abstract base class of context engines.

    Class attributes are defaults that an engine may change; instance attributes are what hosts read.
    """

    threshold_percent: float = 0.75
    protect_first_n: int = 3
    protect_last_n: int = 6
    emit_automatic_compaction_status: ClassVar[bool] = True

    last_prompt_tokens: int = 0
    last_completion_tokens: int = 0
    last_total_tokens: int = 0
    threshold_tokens: int = 0
    context_length: int = 0
    compression_count: int = 0

    # --- required

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the setting `context.engine` chooses it by."""

    @abstractmethod
    def update_from_response(self, usage: Usage) -> None:
        """Take note of the provider's own token counts after a response."""

    @abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether to compress now; by `prompt_tokens`, or the last real count."""

    @abstractmethod
    def compress(
        self,
        messages: list[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[Message]:
        """A shorter history to replace `messages` by; the same list object when there is nothing to do.

        Args:
            messages: the history, never mutated.
            current_tokens: its size as the provider counts it, if known.
            focus_topic: what is to be kept in detail.
            force: compact also below the threshold and while automatic compaction is paused.
            memory_context: what the host wants the summariser to know; not copied into the result.
        """

    # --- life of a conversation

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """Load state. Also called with `boundary_reason="compression"` and `old_session_id` when a session rotates."""
        return

    def on_session_end(self, session_id: str, messages: Sequence[Message]) -> None:
        """A real end of a session, not the end of a turn."""
        return

    def on_session_reset(self) -> None:
        """A new conversation with the same engine: the counters go to zero."""
        self.last_prompt_tokens = 0
        self.last_completion_tokens = 0
        self.last_total_tokens = 0
        self.compression_count = 0

    def on_turn_complete(self, messages: Sequence[Message], usage: Usage | None = None, **kwargs: Any) -> None:
        """Observe a finished turn."""
        return

    def update_model(
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        api_mode: str = "",
    ) -> None:
        """Another model, another window: length and threshold are set; budgets are derived from them when needed."""
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)

    # --- when

    def should_compress_info(self, prompt_tokens: int | None = None) -> tuple[bool, str]:
        """`should_compress`, and why."""
        due = self.should_compress(prompt_tokens)
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        relation = "reached" if due else "not reached"
        return due, f"{tokens:,} tokens; threshold of {self.threshold_tokens:,} {relation}"

    def should_compress_preflight(self, messages: Sequence[Message]) -> bool:
        """A cheap estimate before a request."""
        return False

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        """Whether the provider's own count is to be trusted over the estimate `rough_tokens`."""
        return False

    def has_content_to_compress(self, messages: Sequence[Message]) -> bool:
        """Whether a manual compaction could do anything."""
        return True

    # --- other ways to serve a request

    def prune_tool_results_only(
        self, messages: list[Message], current_tokens: int | None = None
    ) -> tuple[list[Message], int]:
        """Clear old tool results, deterministically and without a model: the list, and how many were cleared."""
        return messages, 0

    def select_context(
        self,
        request_messages: list[Message],
        *,
        conversation_messages: Sequence[Message] | None = None,
        incoming_message: Message | None = None,
        budget_tokens: int = 0,
    ) -> list[Message] | None:
        """Messages for this one request instead of `request_messages`; None or an empty list keeps them."""
        return None

    # --- tools that the engine offers to the agent

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """`{name, description, parameters}` of each tool; `parameters` is a JSON schema."""
        return []

    def handle_tool_call(self, name: str, args: Mapping[str, Any], **kwargs: Any) -> str:
        """The answer of a tool as JSON text; `{"error": ...}` is a tool error."""
        return json.dumps({"error": f"Unknown tool: {name}"})

    # --- telling

    def get_status(self) -> dict[str, Any]:
        """Name, sizes, threshold and counts, as JSON values."""
        percent = 100 * self.last_prompt_tokens / self.context_length if self.context_length else 0.0
        return {
            "name": self.name,
            "context_length": self.context_length,
            "threshold_tokens": self.threshold_tokens,
            "last_prompt_tokens": self.last_prompt_tokens,
            "last_completion_tokens": self.last_completion_tokens,
            "last_total_tokens": self.last_total_tokens,
            "usage_percent": round(max(0.0, percent), 1),
            "compression_count": self.compression_count,
        }

    def get_automatic_compaction_status_message(self, phase: str, default_message: str, **context: Any) -> str | None:
        """What people are told about a routine compaction; empty or None for nothing.

        Warnings, errors and manual commands are always told.
        """
        return default_message if self.emit_automatic_compaction_status else None


__all__ = ["ContextEngine", "Progress", "Usage"]

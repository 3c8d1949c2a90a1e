"""What a compaction did, for programs (`as_dict`) and for people (`render`).

Rules:
- Nothing is lost in silence: what was cut, cleared, repaired, or could not be done is in the report.
- Token counts are of the tokenizer that is named; an estimate is called one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SummarizerUse:
    """Which summariser made the record, and why.

    `parts_done` of `parts` pieces of the middle were summarised by the model; the extractive floor covers all of it.
    """

    name: str = "extractive"
    reason: str = "no model-based summariser is configured"
    parts: int = 0
    parts_done: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """What of the middle is shown afterwards, in the record or in what stays. Anchors are identifiers."""

    messages: int = 0
    anchors: int = 0
    anchors_known: int = 0
    user_messages: int = 0
    user_messages_known: int = 0
    user_characters: int = 0
    user_characters_known: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """The account of one compaction.

    Attributes:
        compressed: whether the history changed; `reason` says why or why not.
        dry_run: nothing was changed, and nothing sent; the numbers are what a compaction would give.
        tokens_before, tokens_after: of the lists, counted with `tokenizer`; `reported_tokens` is what the caller said.
        threshold_tokens, context_length, target_tokens: the limits that applied; no target is None.
        head_messages, summarised_messages, tail_messages: how the list was divided.
        record_tokens: size of the record.
        saved: tokens saved by each phase: `prune` (cleared and cut results) and `summarise` (the middle).
        changes: messages that stay but were cut or cleared inside, by their index in the input.
        repairs: what was mended because a provider would have refused it.
        violations: rules that the result breaks: always empty, or the result is not used.
        warnings: what did not go as configured.
    """

    compressed: bool
    reason: str
    tokens_before: int = 0
    tokens_after: int = 0
    tokenizer: str = ""
    reported_tokens: int | None = None
    threshold_tokens: int = 0
    context_length: int = 0
    target_tokens: int | None = None
    messages_before: int = 0
    messages_after: int = 0
    head_messages: int = 0
    summarised_messages: int = 0
    tail_messages: int = 0
    record_tokens: int = 0
    summarizer: SummarizerUse = field(default_factory=SummarizerUse)
    saved: Mapping[str, int] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    changes: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    archived: bool = False
    dry_run: bool = False
    duration_ms: float = 0.0

    @property
    def valid(self) -> bool:
        return not self.violations

    def as_dict(self) -> dict[str, Any]:
        """JSON values, every field, plus `valid`."""
        out = asdict(self) | {"saved": dict(self.saved), "valid": self.valid}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in out.items()}

    def render(self) -> str:
        """A report to read, one fact a line."""
        smaller = self.compressed or (self.dry_run and self.tokens_after < self.tokens_before)
        title = "Compressed" if self.compressed else "Dry run" if self.dry_run else "Not compressed"
        lines = [f"{title}: {self.reason}"]
        if smaller:
            share = 100 * self.tokens_after / max(1, self.tokens_before)
            lines.append(f"Tokens     {self.tokens_before:,} -> {self.tokens_after:,} ({share:.1f}%), {self.tokenizer}")
            lines.append(
                f"Messages   {self.messages_before:,} -> {self.messages_after:,}: head {self.head_messages}, "
                f"{self.summarised_messages:,} summarised, tail {self.tail_messages}"
            )
            lines.append(
                f"Record     {self.record_tokens:,} tokens by {self.summarizer.name} ({self.summarizer.reason})"
            )
            if self.summarizer.parts:
                lines.append(
                    f"           {self.summarizer.parts_done} of {self.summarizer.parts} parts read by the model"
                )
            lines.append(
                f"Kept       {_of(self.kept.anchors, self.kept.anchors_known)} identifiers, "
                f"{_of(self.kept.user_messages, self.kept.user_messages_known)} messages people typed "
                f"({_percent(self.kept.user_characters, self.kept.user_characters_known)} of their text)"
            )
            if self.saved:
                lines.append("Saved      " + ", ".join(f"{k} {v:,}" for k, v in self.saved.items()))
        else:
            lines.append(f"Tokens     {self.tokens_before:,}, {self.tokenizer}")
        limits = f"window {self.context_length:,}, threshold {self.threshold_tokens:,}"
        lines.append("Limits     " + limits + (f", target {self.target_tokens:,}" if self.target_tokens else ""))
        lines.append(f"Valid      {'for OpenAI, Anthropic and Gemini' if self.valid else '; '.join(self.violations)}")
        for title, entries in (("Changed", self.changes), ("Repaired", self.repairs), ("Warning", self.warnings)):
            lines += [f"{title:<10} {entry}" for entry in entries[:12]]
            if len(entries) > 12:
                lines.append(f"{'':<10} and {len(entries) - 12:,} more")
        lines.append(f"Time       {self.duration_ms:,.0f} ms")
        return "\n".join(lines)


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if whole else "all"


__all__ = ["Kept", "Report", "SummarizerUse"]

"""One compaction, from a list of messages to a shorter one: boundaries, harvest, prune, summarise, assemble, verify.

Rules:
- The summariser and the harvest read the originals; what is cut or cleared is only what stays in the list.
- The result obeys the rules of all providers and is smaller than what came in, or what came in is the result.
- Budgets hold exactly: the assembled list without the record is counted first, and the record gets what is left.
- Nothing here keeps state: what the next compaction needs comes out in the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from watchkeeper.context.core.budget import Budgets, summary_budget
from watchkeeper.context.core.carried import carried_messages
from watchkeeper.context.core.cutting import Count, cut_message
from watchkeeper.context.core.evidence import Harvest
from watchkeeper.context.core.messages import INSTRUCTION_ROLES, Message, texts_of
from watchkeeper.context.core.pruning import RERUN, Recover
from watchkeeper.context.core.record import Found, place, render_record, take_out, with_note
from watchkeeper.context.core.regions import Regions, regions
from watchkeeper.context.core.repair import Repair, repair, repaired
from watchkeeper.context.core.sections import StructuredSummary
from watchkeeper.context.core.validity import check, signed_thinking
from watchkeeper.context.engines.floor import Watched, floor
from watchkeeper.context.engines.model_summary import Brief, ModelSummary, fit, summarize_middle
from watchkeeper.context.engines.view import View
from watchkeeper.context.errors import Cancelled, InvalidArgument
from watchkeeper.context.report import Kept, Report, SummarizerUse
from watchkeeper.context.summarizers.port import Summarizer
from watchkeeper.context.tokens import Tokenizer, message_tokens, total_tokens

LEAST_TARGET: Final = 200
COUNTED: Final = 4_096
"""Texts whose size one compaction remembers."""
MODEL_SHARE: Final = 0.4
"""Of the record's tokens, what a model-based summary may have; the floor has the rest."""
SPARED: Final = 0.15
SPARED_FROM: Final = 8_000
"""Of a target above 8,000 tokens a part stays free: the lines chosen last are worth the least, and every later request
pays for them again."""
# With a target: what of it the record should have, and what tail and head give for it, of their budgets.
_STEPS: Final = (
    (0.3, 1.0, 1.0),
    (0.3, 0.5, 1.0),
    (0.3, 0.2, 1.0),
    (0.3, 0.0, 1.0),
    (0.15, 0.0, 1.0),
    (0.1, 0.0, 0.5),
    (0.05, 0.0, 0.2),
)
_SLACK: Final = 12


@dataclass(frozen=True, slots=True)
class Memory:
    """What one compaction leaves for the next of the same conversation.

    Attributes:
        summary: the model's summary as data.
        originals: the messages behind the record, as long as they are not too many.
        body: the record's body, by which it is recognised.
    """

    summary: StructuredSummary = field(default_factory=StructuredSummary)
    originals: tuple[Message, ...] = ()
    body: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """What to do, and with what.

    Attributes:
        messages: checked for shape; never mutated.
        budgets, context_length, threshold: the limits.
        lean: the tail shows only its newest tool results verbatim.
        protect_first_n: messages of the head.
        memory: of the compaction before.
        recall: how the originals are found again, for the record; empty when nobody keeps them.
        recover: how the original of a message of the input is got back, for its stub.
    """

    messages: list[Message]
    budgets: Budgets
    context_length: int
    threshold: int
    tokenizer: Tokenizer
    lean: bool
    protect_first_n: int
    memory: Memory = field(default_factory=Memory)
    summarizer: Summarizer | None = None
    redact: Callable[[str], str] = str
    focus_topic: str | None = None
    memory_context: str = ""
    recall: str = ""
    recover: Recover = lambda index: RERUN
    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[float, str], None] = lambda done, what: None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The messages (the very list of the order if nothing changed), the account, and what to remember of it."""

    messages: list[Message]
    report: Report
    memory: Memory


def compact(order: Order) -> Outcome:
    """Carry out one compaction.

    Raises:
        Cancelled: the caller asked to stop; nothing was changed.
        InvalidArgument: a target too small for any conversation.
    """
    if order.budgets.cap < LEAST_TARGET:
        raise InvalidArgument(
            f"a target of {order.budgets.cap} tokens holds no conversation", f"target_tokens is at least {LEAST_TARGET}"
        )
    with ThreadPoolExecutor(1, thread_name_prefix="token-count") as pool:
        # tiktoken releases the interpreter: the whole list is counted while the middle is read.
        count = lru_cache(maxsize=COUNTED)(order.tokenizer.count)
        before = pool.submit(total_tokens, Watched(order.messages, order.cancelled), count)
        return _Run(order, before, count).outcome()


class _Run:
    """The steps of one compaction over what they share."""

    def __init__(self, order: Order, before: Future[int], count: Count) -> None:
        self.order = order
        self.budgets = order.budgets
        # Head, tail and record are measured more than once; a text is counted once.
        self.count = count
        self.before = before
        self.changes: dict[int, str] = {}
        self.repairs: tuple[Repair, ...] = ()
        self.mended = order.messages
        self.origin: list[int] = []
        self.pruned_tokens = 0
        self.warnings: list[str] = []

    def size(self, message: Message) -> int:
        return message_tokens(message, self.count)

    def step(self, done: float, what: str) -> None:
        if self.order.cancelled():
            raise Cancelled
        self.order.progress(done, what)

    # --- the whole

    def outcome(self) -> Outcome:
        order = self.order
        if not order.messages:
            return self.unchanged("there are no messages")
        self.step(0.0, "finding boundaries")
        mended = repaired(order.messages)
        self.mended, self.repairs = mended.messages, mended.repairs
        stripped = take_out(mended.messages)
        bare = stripped.messages
        self.origin = [mended.origin[i] for i in stripped.origin]
        if self.budgets.targeted and self.surely_fits():
            return self.unchanged(f"it already fits the target of {self.budgets.cap:,} tokens", mended.messages)
        placed = self.divide(bare)
        if placed is None:
            return self.unchanged("nothing lies between head and tail; target_tokens would go further", mended.messages)
        cut, head, tail = placed
        hidden = self.hidden(bare, cut, stripped.found)
        self.step(0.15, f"reading {len(hidden):,} messages")
        frame = self.assembled(head, tail, "", len(cut.summarised))
        room = self.room(total_tokens(frame, self.count), hidden)
        model = self.summarised(hidden, room)
        self.step(0.7, "keeping what will be needed")
        body, kept = self.body(hidden, [*head, *tail], model, room)
        self.step(0.9, "assembling")
        result = self.assembled(head, tail, body, len(cut.summarised))
        return self.verified(result, body, kept, cut, hidden, model)

    def surely_fits(self) -> bool:
        """Whether the list is within the target; not asked of the counter while it cannot be."""
        characters = sum(len(text) for message in self.order.messages for text in texts_of(message))
        return characters <= self.budgets.cap * 12 and self.before.result() <= self.budgets.cap

    # --- what stays

    def divide(self, bare: list[Message]) -> tuple[Regions, list[Message], list[Message]] | None:
        """Regions, and head and tail as they will stand; None when there is no middle.

        With a target the tail gives way step by step until the record has its least share, then record and head.
        """
        for least, tail_share, head_share in _STEPS if self.budgets.targeted else _STEPS[:1]:
            scaled = replace(
                self.budgets,
                tail=int(self.budgets.tail * tail_share),
                head=int(self.budgets.head * head_share),
            )
            view = View(
                bare,
                scaled,
                lean=self.order.lean or scaled.targeted,
                count=self.count,
                recover=lambda index: self.order.recover(self.origin[index]),
            )
            cut = regions(bare, protect_first_n=self.order.protect_first_n, budgets=scaled, size=view.size)
            tail = view.kept(range(cut.tail, len(bare)))
            if cut.pinned is not None:
                tail = [*view.kept((cut.pinned,)), *tail]
            head = view.head(cut.head)
            if not cut.middle and not view.changes:
                return None
            used = total_tokens(head, self.count) + total_tokens(tail, self.count)
            if used <= scaled.cap * (1 - least):
                break
        self.changes = view.changes
        self.pruned_tokens = sum(self.size(bare[i]) - view.size(i) for i in view.changes if i >= cut.head)
        return cut, head, tail

    def hidden(self, bare: list[Message], cut: Regions, found: Sequence[Found]) -> list[Message]:
        """The originals of everything that will not be shown whole, in order: what harvest and summariser read."""
        wanted = sorted({*cut.summarised, *self.changes})
        out: list[Message] = []
        pending = list(found)
        for index in wanted:
            while pending and pending[0].before <= index:
                out += self.carried(pending.pop(0))
            out += self.sources(bare, index)
        for record in pending:
            out += self.carried(record)
        return out

    def sources(self, bare: list[Message], index: int) -> Sequence[Message]:
        """The messages of the input behind one of the list: several, where neighbours of one role were joined."""
        start = self.origin[index]
        end = self.origin[index + 1] if index + 1 < len(bare) else len(self.order.messages)
        parts = self.order.messages[start:end]
        plain = all(m["role"] == "user" and isinstance(m.get("content"), str) for m in parts)
        return parts if plain and len(parts) > 1 and take_out(parts).messages is parts else [bare[index]]

    def carried(self, record: Found) -> Sequence[Message]:
        memory = self.order.memory
        if memory.originals and memory.body == record.body:
            return memory.originals
        return carried_messages(record.body)

    def assembled(self, head: list[Message], tail: list[Message], body: str, messages: int) -> list[Message]:
        record = render_record(body, messages=messages, recall=self.order.recall)
        if head and head[0]["role"] in INSTRUCTION_ROLES:
            head = [with_note(head[0]), *head[1:]]
        return place(head, record, tail).messages

    # --- what is told of the rest

    def room(self, frame: int, hidden: Sequence[Message]) -> int:
        """Tokens that the record's body may have."""
        left = self.budgets.cap - frame - _SLACK
        if self.budgets.targeted:
            return max(0, left - int(SPARED * max(0, self.budgets.cap - SPARED_FROM)))
        window = self.order.context_length
        enough = summary_budget(10**9, window) * 8  # tokens from which the budget is at its maximum
        middle = 0
        for message in hidden:
            middle += self.size(message)
            if middle > enough:
                break
        return max(0, min(left, summary_budget(middle, window)))

    def summarised(self, hidden: Sequence[Message], room: int) -> ModelSummary:
        order = self.order
        most = int(room * MODEL_SHARE)
        if order.summarizer is None or most < 200:
            reason = SummarizerUse() if order.summarizer is None else SummarizerUse(reason="the budget is too small")
            return ModelSummary(fit(order.memory.summary, most, self.count), reason)
        brief = Brief(
            max_tokens=most,
            earlier=order.memory.summary,
            focus_topic=order.focus_topic,
            memory_context=order.memory_context,
            count=self.count,
            redact=order.redact,
            cancelled=order.cancelled,
            progress=lambda done, what: order.progress(0.2 + 0.45 * done, f"summarising with a model: {what}"),
        )
        # The earlier summary stands for what it covered; only what is new is read again.
        known = {id(m) for m in order.memory.originals} if order.memory.summary else set()
        return summarize_middle(order.summarizer, [m for m in hidden if id(m) not in known], brief)

    def body(
        self, hidden: Sequence[Message], visible: Sequence[Message], model: ModelSummary, room: int
    ) -> tuple[str, Harvest]:
        """The text of the record: the model's sections, then the floor within what they left."""
        sections = model.content.render()
        left = room - (self.count(sections) + 2 if sections else 0)
        kept = Harvest()
        if left >= 16:
            watched = Watched(hidden, self.order.cancelled, self.order.progress)
            kept = floor(watched, visible, room=left, count=self.count, focus_topic=self.order.focus_topic)
        return "\n\n".join(filter(None, (sections, kept.render()))), kept

    # --- the end

    def verified(
        self,
        result: list[Message],
        body: str,
        kept: Harvest,
        cut: Regions,
        hidden: Sequence[Message],
        model: ModelSummary,
    ) -> Outcome:
        result, _ = repair(result)
        after, before = total_tokens(result, self.count), self.before.result()
        if after > self.budgets.cap:
            result = self.forced_under(result, after)
            after = total_tokens(result, self.count)
        if self.budgets.targeted and before <= self.budgets.cap:
            return self.unchanged(f"it already fits the target of {self.budgets.cap:,} tokens")
        if after >= before:
            return self.unchanged(f"the result would not be smaller ({after:,} tokens)")
        self.warnings += [f"the summariser failed: {failure}" for failure in model.use.failures]
        violations = [str(v) for v in check(result)]
        violations += self.broken_thinking(result)
        if violations:
            self.warnings.append("the result broke a rule and was not used: " + "; ".join(violations[:3]))
            return self.unchanged("the result would not have been valid")
        record = self.count(body)
        summarised = len(cut.summarised)
        stays = after - record
        report = self.report(
            compressed=True,
            reason=f"{_messages(summarised, len(self.changes))} became a record of {record:,} tokens",
            tokens_after=after,
            messages_after=len(result),
            head_messages=cut.head,
            summarised_messages=summarised,
            tail_messages=len(result) - cut.head - 1 if cut.head < len(result) else 0,
            record_tokens=record,
            summarizer=model.use,
            saved={"prune": self.pruned_tokens, "summarise": max(0, before - self.pruned_tokens - stays - record)},
            kept=_kept(kept),
        )
        return Outcome(result, report, Memory(model.content, tuple(hidden), _body_as_found(result)))

    def forced_under(self, result: list[Message], after: int) -> list[Message]:
        """The last resort for a cap: the largest messages are cut until it holds."""
        out = list(result)
        for _ in range(6):
            over = after - self.budgets.cap
            if over <= 0:
                break
            sizes = [self.size(m) for m in out]
            largest = max(range(len(out)), key=lambda i: sizes[i])
            smaller = cut_message(out[largest], max(32, sizes[largest] - over - 8), self.count, size=self.size)
            if self.size(smaller) >= sizes[largest]:
                break
            out[largest] = smaller
            after = total_tokens(out, self.count)
        if after > self.budgets.cap:
            self.warnings.append(f"{after:,} tokens is the least this conversation can have; the target was missed")
        return out

    def broken_thinking(self, result: list[Message]) -> list[str]:
        """Signed thinking of the newest turn that is not what came in."""
        had = signed_thinking(self.mended)
        has = signed_thinking(result)
        return (
            [] if has == had[len(had) - len(has) :] else ["anthropic: signed thinking of the newest turn was changed"]
        )

    def unchanged(self, reason: str, repaired: list[Message] | None = None) -> Outcome:
        """The list as it came in, or mended where a provider would have refused it."""
        messages = self.order.messages if repaired is None or not self.repairs else repaired
        if messages is self.order.messages:
            self.repairs = ()
        self.changes = {}
        after = self.before.result() if messages is self.order.messages else total_tokens(messages, self.count)
        violations = tuple(map(str, check(messages))) if messages else ()
        report = self.report(
            compressed=False,
            reason=reason,
            tokens_after=after,
            messages_after=len(messages),
            violations=violations,
        )
        return Outcome(messages, report, self.order.memory)

    def report(self, **facts: object) -> Report:
        order = self.order
        changes = tuple(f"messages[{self.origin[i]}]: {what}" for i, what in sorted(self.changes.items()))
        return Report(
            **{
                "tokens_before": self.before.result(),
                "tokenizer": order.tokenizer.label,
                "threshold_tokens": order.threshold,
                "context_length": order.context_length,
                "target_tokens": self.budgets.cap if self.budgets.targeted else None,
                "messages_before": len(order.messages),
                "changes": changes,
                "repairs": tuple(map(str, self.repairs)),
                "warnings": tuple(self.warnings),
                **facts,
            }  # type: ignore[arg-type]
        )


def _kept(kept: Harvest) -> Kept:
    c = kept.coverage
    return Kept(
        messages=c.messages,
        anchors=c.anchors_kept,
        anchors_known=c.anchors_known,
        user_messages=c.user_messages_quoted,
        user_messages_known=c.user_messages,
        user_characters=c.user_characters_quoted,
        user_characters_known=c.user_characters,
    )


def _messages(summarised: int, changed: int) -> str:
    if not summarised:
        return f"what was cut or cleared in {changed:,} messages"
    return f"{summarised:,} messages" + (f", and what was cut or cleared in {changed:,} others," if changed else "")


def _body_as_found(result: list[Message]) -> str:
    """The body as the next compaction will read it, by which the memory is recognised."""
    found = take_out(result).found
    return found[0].body if found else ""


def text_characters(messages: Sequence[Mapping[str, object]]) -> int:
    """Characters a model reads of the messages."""
    return sum(len(text) for message in messages for text in texts_of(message))


__all__ = ["LEAST_TARGET", "Memory", "Order", "Outcome", "compact", "text_characters"]

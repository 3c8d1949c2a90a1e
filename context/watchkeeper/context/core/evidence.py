"""The extractive floor: the source lines an agent will most likely need again, within a budget of tokens.

Rules this module keeps:

- Pure and deterministic: the same messages, budget and topic give the same harvest.
- Everything in a harvest is quoted; nothing is rephrased. What a person typed comes first, word for word.
- Lines are chosen greedily by the worth of what they say that nothing chosen before (or still visible) says, per
  token; identifiers no chosen line shows are listed bare at the end.
- Tokens are counted with the caller's `count` a few times per harvest, on whole renderings; single lines are estimated.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from watchkeeper.context.core.lexicon import Lexicon, Term
from watchkeeper.context.core.quotes import Quote, choose_quotes, typed_text
from watchkeeper.context.core.source_lines import Part, Speaker, parts_of, pieces

WORTH: dict[Speaker, float] = {"user": 4.0, "host": 0.7, "assistant": 3.0, "call": 3.0, "result": 1.0}
LINE_WORTH: dict[Speaker, float] = {"user": 1.4, "host": 0.8, "assistant": 1.4, "call": 1.2, "result": 1.0}
QUOTES_SHARE = 0.35
INDEX_SHARE = 0.12
TOPIC_SHARE = 0.65


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line quoted from message `index`."""

    index: int
    speaker: Speaker
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what the messages hold is shown, by the harvest or by what stays visible."""

    messages: int = 0
    anchors_known: int = 0
    anchors_kept: int = 0
    user_messages: int = 0
    user_messages_quoted: int = 0
    user_characters: int = 0
    user_characters_quoted: int = 0


@dataclass(frozen=True, slots=True)
class Harvest:
    """What was kept of some messages; `tokens` is the size of `render()`."""

    user_quotes: tuple[Quote, ...] = ()
    quotes_omitted: int = 0
    evidence: tuple[SourceLine, ...] = ()
    anchors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coverage: Coverage = Coverage()
    tokens: int = 0

    def render(self) -> str:
        """The harvest as Markdown; empty when nothing was kept."""
        return "\n\n".join(
            f"## {title}\n{body}"
            for title, body in (
                ("User Messages", render_quotes(self.user_quotes, self.quotes_omitted)),
                ("Evidence", render_evidence(self.evidence)),
                ("Anchors", render_anchors(self.anchors)),
            )
            if body
        )


def render_quotes(quotes: Sequence[Quote], omitted: int) -> str:
    lines = ["> " + quote.text.replace("\n", "\n> ") for quote in quotes]
    if omitted:
        lines.append(f"({omitted} more messages not shown)")
    return "\n".join(lines)


def render_evidence(lines: Sequence[SourceLine]) -> str:
    out = []
    last: tuple[str, str] | None = None
    for line in lines:
        mark = ""
        if (line.speaker, line.tool) != last:
            last = (line.speaker, line.tool)
            mark = _mark(line)
        out.append(mark + line.text)
    return "\n".join(out)


def _mark(line: SourceLine) -> str:
    if line.speaker == "call":
        return f"{line.tool or 'call'}> "
    if line.speaker == "result":
        return f"{line.tool or 'result'}: "
    return {"user": "U: ", "host": "H: ", "assistant": "A: "}[line.speaker]


def render_anchors(anchors: Mapping[str, Sequence[str]]) -> str:
    return "\n".join(f"{kind}: {', '.join(texts)}" for kind, texts in anchors.items())


@dataclass(slots=True)
class _Candidate:
    line: SourceLine
    terms: frozenset[Term]
    factor: float
    cost: float


def harvest(
    messages: Sequence[Mapping[str, Any]],
    *,
    budget: int,
    count: Callable[[str], int],
    focus_topic: str | None = None,
    visible: Sequence[Mapping[str, Any]] = (),
) -> Harvest:
    """What an agent will need from `messages` (originals), in at most `budget` tokens of `render()`.

    `count` gives the tokens of a text. `visible` are messages that stay in the conversation: what they show need not be
    repeated. With a `focus_topic` most of the room goes to lines about it.
    """
    lexicon = Lexicon()
    candidates: list[_Candidate] = []
    typed: list[tuple[int, str]] = []
    known: set[str] = set()
    total = max(1, len(messages))
    previous = -1
    after_tool = False
    for part in parts_of(messages):
        speaker = part.speaker
        if speaker == "user":
            text = typed_text(part.text, after_tool=after_tool)
            if text:
                typed.append((part.index, text))
            else:
                speaker = "host"
        after_tool = speaker == "result"
        recency = 0.5 + 1.5 * (part.index / total) ** 2
        here: set[Term] = set()
        for piece in pieces(part.text):
            terms = lexicon.terms(piece)
            here |= terms
            if terms and piece not in known and len(piece) > 7:
                known.add(piece)
                line = SourceLine(part.index, speaker, part.tool, piece)
                candidates.append(_Candidate(line, terms, LINE_WORTH[speaker], estimate(piece) + 1.5))
        lexicon.sight(here, WORTH[speaker] * recency)
        previous = part.index
    del previous

    covered: set[Term] = set()
    for part in parts_of(visible):
        for piece in pieces(part.text):
            covered |= lexicon.terms(piece)
    weights = lexicon.weights()
    quotes, omitted = choose_quotes(typed, int(budget * QUOTES_SHARE * 3.6))
    quotes_text = render_quotes(quotes, omitted)
    for quote in quotes:
        for piece in pieces(quote.text):
            covered |= lexicon.terms(piece)
    room = budget - count(quotes_text) - 25
    picked = _choose(candidates, weights, set(covered), room * (1 - INDEX_SHARE))
    scale = 1.0
    lines: tuple[SourceLine, ...] = ()
    if picked:
        text = render_evidence([c.line for c in picked])
        scale = count(text) / max(1.0, sum(c.cost for c in picked))
        picked = _choose(candidates, weights, set(covered), room * (1 - INDEX_SHARE) / scale)
        while picked and (used := count(render_evidence(_ordered(picked)))) > room * (1 - INDEX_SHARE / 2):
            del picked[int(len(picked) * 0.97 * room * (1 - INDEX_SHARE) / used) :]
        lines = tuple(_ordered(picked))
        room -= count(render_evidence(lines))
    for candidate in picked:
        covered |= candidate.terms
    anchors = _index(lexicon, weights, covered, room, count)
    anchor_terms = [t for t, kind in enumerate(lexicon.kinds) if kind is not None and lexicon.score[t] > 0]
    result = Harvest(
        tuple(quotes),
        omitted,
        lines,
        anchors,
        Coverage(
            messages=len(messages),
            anchors_known=len(anchor_terms),
            anchors_kept=sum(t in covered for t in anchor_terms) + sum(map(len, anchors.values())),
            user_messages=len(typed),
            user_messages_quoted=len(quotes),
            user_characters=sum(len(text) for _, text in typed),
            user_characters_quoted=sum(len(q.text) for q in quotes),
        ),
    )
    return Harvest(result.user_quotes, omitted, lines, anchors, result.coverage, count(result.render()))


def estimate(text: str) -> float:
    """Tokens of a short text, roughly."""
    if text.isascii():
        return len(text) / 3.4
    wide = sum(c > "\u2e7f" for c in text)
    other = sum("\x7f" < c <= "\u2e7f" for c in text)
    return (len(text) - wide - other) / 3.4 + wide * 0.9 + other * 0.5


def _ordered(picked: Sequence[_Candidate]) -> list[SourceLine]:
    return [c.line for c in sorted(picked, key=lambda c: c.line.index)]


def _choose(
    candidates: Sequence[_Candidate], weights: Sequence[float], covered: set[Term], room: float
) -> list[_Candidate]:
    """Lazy greedy cover: the best line per token first, in the order chosen."""
    heap = []
    for number, c in enumerate(candidates):
        value = sum(weights[t] for t in c.terms if t not in covered) * c.factor / c.cost
        if value > 0:
            heap.append((-value, number))
    heapq.heapify(heap)
    picked: list[_Candidate] = []
    while heap and room > 8:
        value, number = heapq.heappop(heap)
        c = candidates[number]
        if c.cost > room:
            continue
        now = -sum(weights[t] for t in c.terms if t not in covered) * c.factor / c.cost
        if now > value + 1e-12:
            if now < 0:
                heapq.heappush(heap, (now, number))
            continue
        covered |= c.terms
        picked.append(c)
        room -= c.cost
    order = {id(c): n for n, c in enumerate(candidates)}
    picked_in_source = sorted(picked, key=lambda c: order[id(c)])
    del picked_in_source
    return picked


def _index(
    lexicon: Lexicon, weights: Sequence[float], covered: set[Term], room: float, count: Callable[[str], int]
) -> dict[str, tuple[str, ...]]:
    """The best anchors that nothing shows, by kind."""
    left = [t for t, kind in enumerate(lexicon.kinds) if kind is not None and t not in covered and weights[t] > 0]
    left.sort(key=lambda t: -weights[t])
    out: dict[str, list[str]] = {}
    used = 0.0
    for term in left:
        text = lexicon.texts[term]
        cost = estimate(text) * 1.3 + 1.5
        if used + cost > room - 10:
            if room - used < 15:
                break
            continue
        used += cost
        out.setdefault(str(lexicon.kinds[term]), []).append(text)
    index = {kind: tuple(texts) for kind, texts in out.items()}
    while index and count(render_anchors(index)) > room:
        index = {kind: texts[: int(len(texts) * 0.85)] for kind, texts in index.items() if len(texts) > 1}
    return index


__all__ = ["Coverage", "Harvest", "Part", "SourceLine", "harvest"]

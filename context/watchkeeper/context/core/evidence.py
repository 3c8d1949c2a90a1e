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
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from watchkeeper.context.core.lexicon import Lexicon, Term
from watchkeeper.context.core.quotes import Quote, choose_quotes, typed_text
from watchkeeper.context.core.source_lines import Part, Speaker, parts_of, pieces

WORTH: dict[Speaker, float] = {"user": 4.0, "host": 1.0, "assistant": 5.0, "call": 5.0, "result": 1.0}
LINE_WORTH: dict[Speaker, float] = {"user": 1.0, "host": 1.0, "assistant": 1.1, "call": 1.0, "result": 1.0}
QUOTES_SHARE = 0.35
INDEX_SHARE = 0.12
DILUTION = 0.1
MIN_WORDS = 4
MAX_UNIT = 160
_WORD = re.compile(r"[^\W\d_]{4,}")
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
    number: int = 0


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
        here: set[Term] = set()
        unit: list[str] = []
        unit_terms: set[Term] = set()
        words: set[str] = set()
        for piece in pieces(part.text):
            terms = lexicon.terms(piece)
            here |= terms
            if not terms or piece in known:
                continue
            known.add(piece)
            unit.append(piece)
            unit_terms |= terms
            longest = max((lexicon.texts[t] for t in terms if lexicon.kinds[t] is not None), key=len, default="")
            words.update(_WORD.findall(piece.replace(longest, " ")))
            if len(words) >= MIN_WORDS or sum(map(len, unit)) > MAX_UNIT:
                text = "\n".join(unit)
                candidates.append(
                    _Candidate(
                        SourceLine(part.index, speaker, part.tool, text),
                        frozenset(unit_terms),
                        LINE_WORTH[speaker],
                        estimate(text) + 1.5,
                    )
                )
                unit, unit_terms, words = [], set(), set()
        if unit:
            text = "\n".join(unit)
            candidates.append(
                _Candidate(
                    SourceLine(part.index, speaker, part.tool, text),
                    frozenset(unit_terms),
                    LINE_WORTH[speaker],
                    estimate(text) + 1.5,
                )
            )
        lexicon.sight(here, WORTH[speaker] / (1 + len(here)) ** DILUTION, part.index)

    covered: set[Term] = set()
    for part in parts_of(visible):
        for piece in pieces(part.text):
            covered |= lexicon.terms(piece)
    quotes, omitted = choose_quotes(typed, int(budget * QUOTES_SHARE * 3.6))
    quotes_text = render_quotes(quotes, omitted)
    for quote in quotes:
        for piece in pieces(quote.text):
            covered |= lexicon.terms(piece)
    room = budget - count(quotes_text) - 25
    weights = lexicon.weights(total + len(visible))
    HOME.clear()
    for n, c in enumerate(candidates):
        c.number = n
        for t in c.terms:
            HOME.setdefault(t, c)
    picks = _choose(candidates, lexicon, weights, covered, room * 1.6)
    lines, anchors = _fit(picks, lexicon, room, count)
    for line in lines:
        for piece in line.text.split("\n"):
            covered |= lexicon.terms(piece)
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


_Pick = tuple[float, "_Candidate | Term"]
TRIM = 50
HOME = {}
BARE = 0.7


def _choose(
    candidates: Sequence[_Candidate], lexicon: Lexicon, weights: Sequence[float], covered: set[Term], room: float
) -> list[_Pick]:
    """Lazy greedy cover, in the order chosen: units of source lines and bare anchors compete by worth per token.

    A bare anchor is worth part of what a line is that shows it; a later line may still earn the rest.
    """
    left = list(weights)
    for term in covered:
        left[term] = 0.0
    heap: list[tuple[float, int]] = []
    for number, c in enumerate(candidates):
        value = sum([left[t] for t in c.terms]) * c.factor / c.cost
        if value > 0:
            heap.append((-value, number))
    bare: dict[int, float] = {}
    for term, kind in enumerate(lexicon.kinds):
        if kind is not None and left[term] > 0 and term in HOME:
            bare[term] = estimate(lexicon.texts[term]) * 1.2 + 1.5
            heap.append((-BARE * left[term] / bare[term], -1 - term))
    heapq.heapify(heap)
    picked: list[_Pick] = []
    while heap and room > 4:
        value, number = heapq.heappop(heap)
        if number < 0:
            term = -1 - number
            cost = bare[term]
            if left[term] < weights[term] or cost > room:
                continue
            left[term] *= 1 - BARE
            picked.append((cost, term))
            room -= cost
            continue
        c = candidates[number]
        if c.cost > room:
            continue
        now = -sum([left[t] for t in c.terms]) * c.factor / c.cost
        if now > value + 1e-12:
            if now < 0:
                heapq.heappush(heap, (now, number))
            continue
        cost = c.cost
        if TRIM and cost > 30:
            spans = []
            for t in c.terms:
                if left[t] > 0 and lexicon.kinds[t] is not None:
                    at = c.line.text.find(lexicon.texts[t])
                    if at >= 0:
                        spans.append((at, at + len(lexicon.texts[t])))
            if spans:
                lo = max(0, min(spans)[0] - TRIM)
                hi = min(len(c.line.text), max(e for _, e in spans) + TRIM)
                text = c.line.text
                if lo > 0:
                    while lo < len(text) and not text[lo].isspace(): lo += 1
                if hi < len(text):
                    while hi > lo and not text[hi - 1].isspace(): hi -= 1
                if hi - lo < len(text) - 20:
                    kept = text[lo:hi].strip()
                    line = SourceLine(c.line.index, c.line.speaker, c.line.tool, kept)
                    c = _Candidate(line, frozenset(t for t in c.terms if lexicon.texts[t] in kept), c.factor, estimate(kept) + 1.5, c.number)
                    cost = c.cost
        for term in c.terms:
            left[term] = 0.0
        picked.append((cost, c))
        room -= cost
    return picked


def _fit(
    picks: Sequence[_Pick], lexicon: Lexicon, room: int, count: Callable[[str], int]
) -> tuple[tuple[SourceLine, ...], dict[str, tuple[str, ...]]]:
    """As many picks, in their order, as fit the room when rendered: the estimate is corrected by a few counts."""
    best: tuple[tuple[SourceLine, ...], dict[str, tuple[str, ...]]] = ((), {})
    scale, most = 1.0, 0
    for _ in range(5):
        used, end = 0.0, 0
        for cost, _pick in picks:
            if (used + cost) * scale > room:
                break
            used += cost
            end += 1
        if end <= most:
            break
        lines, anchors = _arranged(picks[:end], lexicon)
        size = count(render_evidence(lines))
        if size <= room:
            best, most = (lines, anchors), end
            if size > room * 0.985:
                break
        scale = size / max(1.0, used) * (1.002 if size <= room else 1.006)
    return best


def _arranged(picks: Sequence[_Pick], lexicon: Lexicon) -> tuple[tuple[SourceLine, ...], dict[str, tuple[str, ...]]]:
    """Picks in source order; bare anchors are listed where they were first met, among what they were met with."""
    shown: set[Term] = set()
    for _, pick in picks:
        if isinstance(pick, _Candidate):
            shown |= pick.terms
    placed: list[tuple[int, int, _Candidate | None, Term]] = []
    for _, pick in picks:
        if isinstance(pick, _Candidate):
            placed.append((pick.number, -1, pick, -1))
        elif pick not in shown:
            placed.append((HOME[pick].number, pick, None, pick))
    placed.sort(key=lambda p: p[:2])
    lines: list[SourceLine] = []
    names: list[str] = []
    home: SourceLine | None = None
    anchors: dict[str, list[str]] = {}
    def flush():
        nonlocal names
        if names:
            lines.append(SourceLine(home.index, home.speaker, home.tool, "+ " + ", ".join(names)))
            names = []
    for number, _, c, term in placed:
        if c is not None:
            flush()
            lines.append(c.line)
            continue
        at = HOME[term].line
        if home is not None and (at.index, at.speaker, at.tool) != (home.index, home.speaker, home.tool):
            flush()
        home = at
        names.append(lexicon.texts[term])
        anchors.setdefault(str(lexicon.kinds[term]), []).append(lexicon.texts[term])
    flush()
    return tuple(lines), {kind: tuple(texts) for kind, texts in anchors.items()}


__all__ = ["Coverage", "Harvest", "Part", "SourceLine", "harvest"]

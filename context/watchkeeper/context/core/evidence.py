"""The extractive floor: the source lines an agent will most likely need again, within a budget of tokens.

Rules this module keeps:

- Pure and deterministic: the same messages, budget and topic give the same harvest.
- Everything in a harvest is quoted; nothing is rephrased. What a person typed comes first, word for word.
- Evidence stands in the order of the source and says who spoke; identifiers that no quoted line shows are listed where
  they were met, next to what they were met with.
- Tokens are counted with the caller's `count` a few times per harvest, on whole renderings; single lines are estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final

from watchkeeper.context.core.cues import tells_decision, tells_error
from watchkeeper.context.core.focus import Focus
from watchkeeper.context.core.lexicon import Lexicon, Term
from watchkeeper.context.core.quotes import Quote, choose_quotes, typed_text
from watchkeeper.context.core.selection import Chooser, Pick
from watchkeeper.context.core.source_lines import Part, Speaker, parts_of, pieces
from watchkeeper.context.core.units import Unit, Units, estimate

WORTH: Final[dict[Speaker, float]] = {"user": 4.0, "host": 1.0, "assistant": 5.0, "call": 5.0, "result": 1.0}
"""What a sighting says about future need, by who wrote it: the agent reuses above all what it wrote before."""
DILUTION: Final = 0.1
"""A sighting among n terms of one part counts n to the minus this: a long listing says less about each."""
QUOTES_SHARE: Final = 0.35
"""The most of the budget that people's words take; what they do not need goes to evidence."""
TOPIC_SHARE: Final = 0.68
"""Of the evidence, what lines about the focus topic may have before all others."""
_HEADINGS: Final = 12
_FITTED: Final = 0.985


@dataclass(frozen=True, slots=True)
class SourceLine:
    """What message `index` holds: quoted text, or (`listed`) names of anchors found there."""

    index: int
    speaker: Speaker
    tool: str
    text: str
    listed: bool = False


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
    """What was kept of some messages.

    Attributes:
        user_quotes: what people typed, in order; `quotes_omitted` messages are missing among them.
        evidence: quoted lines and listed names, in order.
        anchors: the listed names by kind.
        tokens: the size of `render()`.
    """

    user_quotes: tuple[Quote, ...] = ()
    quotes_omitted: int = 0
    evidence: tuple[SourceLine, ...] = ()
    anchors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coverage: Coverage = Coverage()
    tokens: int = 0

    @property
    def errors(self) -> tuple[SourceLine, ...]:
        """The kept lines that tell of errors."""
        return tuple(line for line in self.evidence if not line.listed and tells_error(line.text))

    @property
    def decisions(self) -> tuple[SourceLine, ...]:
        """The kept lines in which a person or the agent decides something or gives a reason."""
        return tuple(
            line
            for line in self.evidence
            if line.speaker in ("user", "assistant") and not line.listed and tells_decision(line.text)
        )

    @property
    def files(self) -> tuple[str, ...]:
        """The listed files and paths."""
        return tuple(self.anchors.get("path", ())) + tuple(self.anchors.get("file", ()))

    def render(self) -> str:
        """The harvest as Markdown; empty when nothing was kept."""
        sections = (
            ("User Messages", render_quotes(self.user_quotes, self.quotes_omitted)),
            ("Evidence", render_evidence(self.evidence)),
        )
        return "\n\n".join(f"## {title}\n{body}" for title, body in sections if body)


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
    repeated. With a `focus_topic` about two thirds of the evidence are lines about it, as far as there are such lines.
    """
    lexicon = Lexicon()
    units, typed = _read(messages, lexicon)
    quotes, omitted, quotes_tokens = _quotes(typed, int(budget * QUOTES_SHARE), count)
    covered = _shown_by(visible, quotes, lexicon)
    weights = lexicon.weights(len(messages) + len(visible))
    room = budget - quotes_tokens - _HEADINGS
    picks = _choose(units, Chooser(lexicon, weights, covered), room * 1.6, focus_topic)
    evidence, used = _fit(picks, lexicon, room, count)
    for pick in used:
        covered.update(pick.unit.terms if pick.anchor is None else (pick.anchor,))
    listed = [pick.anchor for pick in used if pick.anchor is not None]
    known = [t for t, kind in enumerate(lexicon.kinds) if kind is not None and lexicon.is_known(t)]
    result = Harvest(
        user_quotes=tuple(quotes),
        quotes_omitted=omitted,
        evidence=evidence,
        anchors=_by_kind(listed, lexicon),
        coverage=Coverage(
            messages=len(messages),
            anchors_known=len(known),
            anchors_kept=sum(t in covered for t in known),
            user_messages=len(typed),
            user_messages_quoted=len(quotes),
            user_characters=sum(len(text) for _, text in typed),
            user_characters_quoted=sum(len(quote.text) for quote in quotes),
        ),
    )
    return replace(result, tokens=count(result.render()))


# --- reading ------------------------------------------------------------------------------------------


def _read(messages: Sequence[Mapping[str, Any]], lexicon: Lexicon) -> tuple[list[Unit], list[tuple[int, str]]]:
    """The units of all messages, and what people typed, by message index."""
    units = Units(lexicon)
    typed: list[tuple[int, str]] = []
    after_result = False
    for part in parts_of(messages):
        if part.speaker == "user":
            if text := typed_text(part.text, after_tool=after_result):
                typed.append((part.index, text))
            else:
                part = replace(part, speaker="host")
        after_result = part.speaker == "result"
        terms = units.add(part)
        lexicon.sight(terms, WORTH[part.speaker] * (1 + len(terms)) ** -DILUTION, part.index)
    return units.all, typed


def _quotes(typed: Sequence[tuple[int, str]], room: int, count: Callable[[str], int]) -> tuple[list[Quote], int, int]:
    """Quotes within `room` tokens, how many messages were left out, and the tokens they take."""
    if not typed:
        return [], 0, 0
    sample = "".join(text for _, text in typed)[:20_000]
    characters = room * len(sample) / max(1.0, estimate(sample))
    for _ in range(4):
        quotes, omitted = choose_quotes(typed, int(characters))
        tokens = count(render_quotes(quotes, omitted))
        if tokens <= room:
            return quotes, omitted, tokens
        characters *= room / tokens * 0.97
    return [], len(typed), count(render_quotes([], len(typed)))


def _shown_by(visible: Sequence[Mapping[str, Any]], quotes: Iterable[Quote], lexicon: Lexicon) -> set[Term]:
    covered: set[Term] = set()
    for text in [*(part.text for part in parts_of(visible)), *(quote.text for quote in quotes)]:
        for piece in pieces(text):
            covered |= lexicon.terms(piece)
    return covered


# --- choosing -----------------------------------------------------------------------------------------


def _choose(units: Sequence[Unit], chooser: Chooser, most: float, topic: str | None) -> list[Pick]:
    """Picks in the order in which they are worth their tokens; of any beginning, `TOPIC_SHARE` is about the topic."""
    focus = Focus(topic) if topic else None
    if focus is None or not focus.terms:
        return chooser.choose(units, most)
    about = {unit.number: share for unit in units if (share := focus.share(unit.text))}
    first = chooser.choose([unit for unit in units if unit.number in about], most * TOPIC_SHARE, about)
    rest = chooser.choose(units, most - sum(pick.cost for pick in first))
    return _interleaved(first, rest)


def _interleaved(first: Sequence[Pick], rest: Sequence[Pick]) -> list[Pick]:
    out: list[Pick] = []
    used = [0.0, 0.0]
    queues = [list(reversed(first)), list(reversed(rest))]
    while queues[0] or queues[1]:
        turn = 0 if used[0] <= TOPIC_SHARE * (used[0] + used[1]) else 1
        if not queues[turn]:
            turn = 1 - turn
        pick = queues[turn].pop()
        used[turn] += pick.cost
        out.append(pick)
    return out


def _fit(
    picks: Sequence[Pick], lexicon: Lexicon, room: int, count: Callable[[str], int]
) -> tuple[tuple[SourceLine, ...], Sequence[Pick]]:
    """As many picks, in their order, as fit the room when rendered: the estimate is corrected by a few counts."""
    best: tuple[SourceLine, ...] = ()
    scale, most = 1.0, 0
    for _ in range(6):
        used, end = 0.0, 0
        for pick in picks:
            if (used + pick.cost) * scale > room:
                break
            used += pick.cost
            end += 1
        if end <= most:
            break
        lines = _arranged(picks[:end], lexicon)
        size = count(render_evidence(lines))
        if size <= room:
            best, most = lines, end
            if size > room * _FITTED:
                break
        scale = size / max(1.0, used) * (1.002 if size <= room else 1.006)
    return best, picks[:most]


def _arranged(picks: Sequence[Pick], lexicon: Lexicon) -> tuple[SourceLine, ...]:
    """Picks in source order; names that a quoted unit shows are left out, neighbouring ones stand in one line."""
    shown: set[Term] = set()
    for pick in picks:
        if pick.anchor is None:
            shown |= pick.unit.terms
    wanted = [pick for pick in picks if pick.anchor is None or pick.anchor not in shown]
    wanted.sort(key=lambda pick: (pick.unit.number, -1 if pick.anchor is None else pick.anchor))
    lines: list[SourceLine] = []
    for _, together in groupby(wanted, _place):
        first, *others = together
        if first.anchor is None:
            lines += [_line(pick.unit.part, pick.unit.text) for pick in (first, *others)]
        else:
            names = ", ".join(lexicon.texts[pick.anchor] for pick in (first, *others) if pick.anchor is not None)
            lines.append(_line(first.unit.part, names, listed=True))
    return tuple(lines)


def _place(pick: Pick) -> tuple[int, Speaker, bool]:
    part = pick.unit.part
    return part.index, part.speaker, pick.anchor is None


def _line(part: Part, text: str, *, listed: bool = False) -> SourceLine:
    return SourceLine(part.index, part.speaker, part.tool, text, listed)


def _by_kind(anchors: Iterable[Term], lexicon: Lexicon) -> dict[str, tuple[str, ...]]:
    out: dict[str, list[str]] = {}
    for term in anchors:
        out.setdefault(str(lexicon.kinds[term]), []).append(lexicon.texts[term])
    return {kind: tuple(names) for kind, names in out.items()}


# --- rendering ----------------------------------------------------------------------------------------


def render_quotes(quotes: Sequence[Quote], omitted: int) -> str:
    """Each quote as a Markdown quotation."""
    blocks = ["> " + quote.text.replace("\n", "\n> ") for quote in quotes]
    if omitted:
        blocks.append(f"({omitted} more messages between them are not shown)")
    return "\n\n".join(blocks)


def render_evidence(lines: Sequence[SourceLine]) -> str:
    """Lines with their speaker where it changes: `A:` the agent, `U:` a person, `H:` the host, `name>` a call of a
    tool, `name:` its result. A line that begins with `+` lists names found at that place."""
    out: list[str] = []
    last, listing = "", False
    for line in lines:
        mark = _mark(line)
        if mark == last and listing and line.listed:
            out[-1] += f", {line.text}"
            continue
        out.append(("" if mark == last else mark) + ("+ " if line.listed else "") + line.text)
        last, listing = mark, line.listed
    return "\n".join(out)


def _mark(line: SourceLine) -> str:
    tool = line.tool.rsplit("__", 1)[-1]
    if line.speaker == "call":
        return f"{tool or 'call'}> "
    if line.speaker == "result":
        return f"{tool or 'result'}: "
    return {"user": "U: ", "host": "H: ", "assistant": "A: "}[line.speaker]


__all__ = ["Coverage", "Harvest", "SourceLine", "harvest", "render_evidence", "render_quotes"]

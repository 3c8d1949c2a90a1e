"""Lines chosen and written out: within a budget, from a cursor, around what was sought, or only what changed.

Rules: never over the budget by the caller's own count. Whatever is left out is counted in a line that begins with ``…``
and has the cursor that leads to it. Pure.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from .budget import Selection, left_out
from .lines import Lines

Cost = Callable[[str], int]
SAMPLE_LINES = 120
DIFF_LINES = 4_000
"""Changed stretches longer than this are not compared line by line."""
CUT_LINE = 60


@dataclass(frozen=True, slots=True)
class Rendered:
    """``shown`` of ``total`` lines are in the text."""

    text: str
    shown: int
    total: int
    tokens: int


def render(
    lines: Lines, snapshot_id: str, *, max_tokens: int | None, cost: Cost, start: int = 0, end: int | None = None
) -> Rendered:
    """Lines ``start`` to ``end``, within ``max_tokens`` by ``cost``; None: all of them."""
    end = len(lines) if end is None else min(end, len(lines))
    whole = "\n".join(_plain(lines, start, end))
    if max_tokens is None:
        return Rendered(whole, end - start, end - start, 0)
    budget = _characters(lines, start, end, max_tokens, cost)
    if len(whole) <= budget * 1.5 and (tokens := cost(whole)) <= max_tokens:
        return Rendered(whole, end - start, end - start, tokens)
    selection = Selection(lines, start, end)
    for _ in range(6):
        selection.choose(min(budget, len(whole)))
        text, shown = _write(lines, selection, snapshot_id)
        tokens = cost(text)
        if not shown:
            break  # a cursor over everything would lead nowhere
        if tokens <= max_tokens:
            return Rendered(text, shown, end - start, tokens)
        budget = int(budget * max_tokens / tokens * 0.95)
    return _hard_cut(lines, snapshot_id, start, end, max_tokens, cost)


def _hard_cut(lines: Lines, snapshot_id: str, start: int, end: int, max_tokens: int, cost: Cost) -> Rendered:
    """A budget too small to be fair in: the first lines that fit, and in any case the beginning of the first."""
    texts: list[str] = []
    for i, text in zip(range(start, end), _plain(lines, start, end), strict=True):
        rest = f"… {left_out(lines.kinds[i + 1 : end])} cursor={snapshot_id}:{i + 1}-{end}"
        if cost("\n".join([*texts, text, rest])) > max_tokens:
            break
        texts.append(text)
    if not texts and start < end:
        first = lines.texts[start]
        rest = f'…" (+{len(first) - CUT_LINE:,} characters cursor={snapshot_id}:{start}-{start + 1}@{CUT_LINE})'
        texts.append(_cut(first, CUT_LINE) + rest if len(first) > CUT_LINE else first)
    shown = len(texts)
    if start + shown < end:
        texts.append(f"… {end - start - shown:,} more lines cursor={snapshot_id}:{start + shown}-{end}")
    text = "\n".join(texts)
    return Rendered(text, shown, end - start, cost(text))


def _characters(lines: Lines, start: int, end: int, max_tokens: int, cost: Cost) -> int:
    """How many characters of such lines fit a number of tokens."""
    step = max(1, (end - start) // SAMPLE_LINES)
    sample = "\n".join(lines.texts[i][:400] for i in range(start, end, step))[:20_000]
    return max_tokens * 3 if not sample else int(max_tokens * len(sample) / max(1, cost(sample)))


def _plain(lines: Lines, start: int, end: int) -> Iterator[str]:
    base = min(lines.depths[start:end], default=0)
    indents = [" " * n for n in range(65)]
    for depth, text in zip(lines.depths[start:end], lines.texts[start:end], strict=True):
        yield indents[min(depth - base, 64)] + text


def _write(lines: Lines, selection: Selection, snapshot_id: str) -> tuple[str, int]:
    start, end, kept = selection.start, selection.end, selection.kept
    base = min(lines.depths[start:end], default=0)
    out: list[str] = []
    shown, i = 0, start
    while i < end:
        indent = " " * min(lines.depths[i] - base, 64)
        if kept[i - start]:
            text = lines.texts[i]
            limit = selection.shortened.get(i - start)
            if limit is not None and limit < len(text):
                more = f'…" (+{len(text) - limit:,} characters cursor={snapshot_id}:{i}-{i + 1}@{limit})'
                text = _cut(text, limit) + more
            out.append(indent + text)
            shown += 1
            i += 1
            continue
        until = i
        while until < end and not kept[until - start]:
            until += 1
        out.append(f"{indent}… {left_out(lines.kinds[i:until])} cursor={snapshot_id}:{i}-{until}")
        i = until
    return "\n".join(out), shown


def _cut(text: str, limit: int) -> str:
    """The beginning of a line, not ending within an escape."""
    head = text[:limit]
    slashes = len(head) - len(head.rstrip("\\"))
    return head[:-1] if slashes % 2 else head


def rest_of_line(lines: Lines, row: int, offset: int, snapshot_id: str, max_tokens: int | None, cost: Cost) -> Rendered:
    """A long line from a character on, as much as fits."""
    text = lines.texts[row][offset:]
    if not text:
        return Rendered("", 0, 1, 0)
    shown = len(text)
    while True:
        head = text[:shown] if shown == len(text) else _cut(text, shown)
        more = len(text) - len(head)
        rest = f'…" (+{more:,} characters cursor={snapshot_id}:{row}-{row + 1}@{offset + len(head)})' if more else ""
        written = f'"…{head}{rest}'
        tokens = cost(written)
        if max_tokens is None or tokens <= max_tokens or shown <= CUT_LINE:
            return Rendered(written, 1, 1, tokens)
        shown = min(shown - 1, int(shown * max_tokens / tokens * 0.95))


def find(lines: Lines, sought: str, snapshot_id: str, *, max_tokens: int | None, cost: Cost) -> Rendered:
    """Lines that contain a text, whatever its case, each below the lines that it stands in."""
    wanted = " ".join(sought.split()).casefold()
    matches = [i for i, text in enumerate(lines.texts) if wanted in text.casefold()]
    shown = matches
    while True:
        text = _found(lines, shown, len(matches), wanted)
        tokens = cost(text)
        if max_tokens is None or tokens <= max_tokens or len(shown) <= 1:
            return Rendered(text, len(shown), len(matches), tokens)
        shown = shown[: min(len(shown) - 1, max(1, int(len(shown) * max_tokens / tokens * 0.95)))]


def _found(lines: Lines, shown: list[int], total: int, wanted: str) -> str:
    keep: dict[int, bool] = {}
    for row in shown:
        depth = lines.depths[row]
        keep[row] = True
        i = row - 1
        while i >= 0 and depth > 0:
            if lines.depths[i] < depth:
                depth = lines.depths[i]
                if keep.setdefault(i, False):
                    break
            i -= 1
    out = [
        f"{total:,} line{'s' if total != 1 else ''} found" + (f", {len(shown):,} shown" if len(shown) < total else "")
    ]
    for row in sorted(keep):
        text = lines.texts[row]
        out.append(" " * lines.depths[row] + (_around(text, wanted) if keep[row] else text[:200]))
    return "\n".join(out)


def _around(text: str, wanted: str) -> str:
    """A long line, cut to what is around the match."""
    if len(text) <= 400:
        return text
    at = text.casefold().find(wanted)
    first, last = max(0, at - 150), min(len(text), at + len(wanted) + 150)
    return ('"…' if first else "") + _cut(text[first:last], last - first) + ('…"' if last < len(text) else "")


def changes(before: Lines, after: Lines, *, max_tokens: int | None, cost: Cost) -> Rendered:
    """What differs between two snapshots: lines that came (+), went (-)."""
    old = list(zip(before.depths, before.texts, strict=True))
    new = list(zip(after.depths, after.texts, strict=True))
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    gone, came = old[first : len(old) - last], new[first : len(new) - last]
    out: list[str] = []
    stretches = [(0, len(gone), 0, len(came))]
    if len(gone) <= DIFF_LINES and len(came) <= DIFF_LINES:
        operations = SequenceMatcher(None, gone, came, autojunk=False).get_opcodes()
        stretches = [(i, i_end, j, j_end) for kind, i, i_end, j, j_end in operations if kind != "equal"]
    removed = added = 0
    for i, i_end, j, j_end in stretches:
        removed += i_end - i
        added += j_end - j
        out.extend(f"- {text}" for _, text in gone[i:i_end])
        out.extend(f"+ {' ' * min(depth, 64)}{text}" for depth, text in came[j:j_end])
    head = f"{added:,} line{'s' if added != 1 else ''} added, {removed:,} removed" if out else "nothing changed"
    total = len(out)
    text = "\n".join([head, *out])
    tokens = cost(text)
    while max_tokens is not None and tokens > max_tokens and out:
        out = out[: min(len(out) - 1, int(len(out) * max_tokens / tokens * 0.95))]
        text = "\n".join([head, *out, f"… {total - len(out):,} more changed lines; take a whole snapshot"])
        tokens = cost(text)
    return Rendered(text, len(out), total, tokens)

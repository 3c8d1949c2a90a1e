"""A tree as lines of text: what a reader of a snapshot sees of each element.

Rules: everything that comes from the page stands in double quotes with quotes, line ends and control characters
escaped, so page text cannot pass for a ref, a role, a marker or our own words. Everything outside of quotes is ours.
A line that only arranges (an unnamed list item, a paragraph) is joined with what it holds where that fits.

    e3 textbox "Email" required = "a@b.c"
    row "Total" "12.00" e9 button "Change"
    f2 frame "https://pay.example/"
      f2e1 textbox "Card number"
"""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ..core.quoting import quoted
from .tree import Tree

JOINED_LENGTH = 400
"""Longest line, in characters, that is put together from several elements."""
CELLS = frozenset({"cell", "gridcell", "columnheader", "rowheader"})
FLOWS = CELLS | {"row", "listitem", "paragraph", "definition", "term", "alert", "status", "figure", "group", "log"}
SILENT = frozenset({"paragraph", "listitem", "cell", "gridcell"})
OPTIONS_SHOWN = 8


@dataclass(slots=True)
class Lines:
    """One line a row. ``kinds`` is the role that a line is counted as when it is left out; ``frames`` the frame span
    that it belongs to, as an index into the tree's spans."""

    depths: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    frame_starts: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Span index -> its lines, from (the line of its iframe not included) and to."""

    def __len__(self) -> int:
        return len(self.texts)


def lines_of(tree: Tree) -> Lines:
    """All lines of a tree."""
    return _Writer(tree).write()


class _Writer:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._ends = subtree_ends(tree.depths)
        self._out = Lines()
        self._span_of_owner = {span.start - 1: number for number, span in enumerate(tree.spans) if span.start > 0}

    def write(self) -> Lines:
        tree, out = self._tree, self._out
        depths, roles, names, ends = tree.depths, tree.roles, tree.names, self._ends
        open_spans: list[tuple[int, int, int]] = []  # (last node + 1, span, first line)
        span = 0
        # Depth of lines: containers that show no line of their own do not indent what they hold.
        lifted: list[tuple[int, int]] = []  # (last node + 1, how much) of unindenting ancestors
        i, count = 0, len(depths)
        while i < count:
            while open_spans and i >= open_spans[-1][0]:
                end, inner, first = open_spans.pop()
                out.frame_starts[inner] = (first, len(out.texts))
                span = open_spans[-1][1] if open_spans else 0
            while lifted and i >= lifted[-1][0]:
                lifted.pop()
            depth = depths[i] - (lifted[-1][1] if lifted else 0)
            start, role, end = i, roles[i], ends[i]
            if end == i + 1 and role == "":
                text, kind = quoted(names[i]), "text"
            elif i in self._span_of_owner:
                number = self._span_of_owner[i]
                self._add(depth, self._frame(i, number), "frame", span)
                open_spans.append((end, number, len(out.texts)))
                span = number
                i += 1
                continue
            else:
                joined = self._joined(i, end)
                if joined is not None:
                    text = joined
                    i = end - 1
                elif role in SILENT and self._says_nothing(i):
                    lifted.append((end, (lifted[-1][1] if lifted else 0) + 1))
                    i += 1
                    continue
                else:
                    text = self._head(i)
                kind = role if role not in SILENT else self._kind_within(start, end)
            self._add(depth, text, kind, span)
            i += 1
        while open_spans:
            _, inner, first = open_spans.pop()
            out.frame_starts[inner] = (first, len(out.texts))
        out.frame_starts[0] = (0, len(out.texts))
        return out

    def _add(self, depth: int, text: str, kind: str, span: int) -> None:
        out = self._out
        out.depths.append(depth)
        out.texts.append(text)
        out.kinds.append(kind)
        out.frames.append(span)

    def _kind_within(self, start: int, end: int) -> str:
        """What a line that only arranges is counted as: the first thing in it that can be acted on."""
        return next((self._tree.roles[i] for i in range(start, end) if self._tree.refs[i]), "text")

    def _says_nothing(self, i: int) -> bool:
        tree = self._tree
        return not (tree.refs[i] or tree.names[i] or i in tree.states)

    def _joined(self, i: int, end: int) -> str | None:
        """An element and all that it holds on one line, where that reads well."""
        tree = self._tree
        role = tree.roles[i]
        if end == i + 1:
            if role in CELLS and not tree.refs[i] and i not in tree.states:
                return quoted(tree.names[i])
            return self._head(i)
        if role in ("combobox", "listbox") and self._only_options(i, end):
            return self._select(i, end)
        if role not in FLOWS and not role.startswith("h"):
            return None
        parts: list[str] = []
        length, child = 0, i + 1
        while child < end:
            if child in self._span_of_owner:
                return None
            child_end = self._ends[child]
            if child_end == child + 1 or tree.roles[child] in CELLS or tree.roles[child] in ("combobox", "paragraph"):
                text = self._joined(child, child_end)
            else:
                text = None
            if text is None or (length := length + len(text) + 1) > JOINED_LENGTH:
                return None
            parts.append(text)
            child = child_end
        name = tree.names[i]
        if len(parts) == 1 and name and tree.names[i + 1] == name and not tree.refs[i]:
            return f"{role} {parts[0]}"
        if role in SILENT and self._says_nothing(i):
            if role == "listitem":
                return parts[0] if len(parts) == 1 else "- " + " ".join(parts)
            if role in CELLS:
                return parts[0] if len(parts) == 1 else f"({' '.join(parts)})"
            return " ".join(parts)
        if role == "row" and self._says_nothing(i):
            return f"row {' '.join(parts)}"
        return f"{self._head(i)}: {' '.join(parts)}"

    def _only_options(self, i: int, end: int) -> bool:
        tree = self._tree
        return all(role in ("option", "group") for role in tree.roles[i + 1 : end]) and not any(tree.refs[i + 1 : end])

    def _select(self, i: int, end: int) -> str:
        tree = self._tree
        is_list = tree.roles[i] == "listbox"
        shown: list[str] = []
        left = OPTIONS_SHOWN
        total = sum(1 for role in tree.roles[i + 1 : end] if role == "option")
        group = ""
        for option in range(i + 1, end):
            if tree.roles[option] == "group":
                group = f"{quoted(tree.names[option])}: "
                continue
            if left == 0:
                break
            left -= 1
            state = tree.states.get(option, "")
            marks = (" selected" if is_list and "selected" in state else "") + (
                " disabled" if "disabled" in state else ""
            )
            shown.append(group + quoted(tree.names[option]) + marks)
            group = ""
        more = total - len(shown)
        listed = ", ".join(shown) + (f", … {more} more" if more > 0 else "")
        return f"{self._head(i)} options: {listed}" if shown else self._head(i)

    def _head(self, i: int) -> str:
        tree = self._tree
        role, name, ref = tree.roles[i], tree.names[i], tree.refs[i]
        text = f"{ref} {role}" if ref else role
        if name:
            text = f"{text} {quoted(name)}" if text else quoted(name)
        if i in tree.states:
            text += tree.states[i]
        if i in tree.values and tree.values[i] != name:
            text += f" = {quoted(tree.values[i])}"
        if i in tree.descriptions:
            text += f" description={quoted(tree.descriptions[i])}"
        if i in tree.links:
            text += f" {_link(tree.links[i])}"
        return text

    def _frame(self, i: int, number: int) -> str:
        tree = self._tree
        span = tree.spans[number]
        ref = f"{tree.refs[i]} " if tree.refs[i] else ""
        name = f" {quoted(tree.names[i])}" if tree.names[i] else ""
        note = f" ({span.note})" if span.note else ""
        return f"{ref}frame {span.short}{name} {quoted(self._address(span.url))}{note}"

    def _address(self, url: str) -> str:
        """A frame's address; without the origin where it is the page's own."""
        top = urlsplit(self._tree.spans[0].url)
        origin = f"{top.scheme}://{top.netloc}/"
        return (url.removeprefix(origin[:-1]) if url.startswith(origin) and top.netloc else url)[:200]


def _link(text: str) -> str:
    return f"hint={quoted(text[1:])}" if text.startswith("#") and len(text) > 1 else f"url={quoted(text)}"


def subtree_ends(depths: list[int]) -> list[int]:
    """For each row the index after the last row below it."""
    count = len(depths)
    ends = [count] * count
    open_rows: list[int] = []
    for i, depth in enumerate(depths):
        while open_rows and depths[open_rows[-1]] >= depth:
            ends[open_rows.pop()] = i
        open_rows.append(i)
    return ends

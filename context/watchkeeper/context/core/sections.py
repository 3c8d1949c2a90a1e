"""The structured summary: sections of short items, kept as data and rendered when a message needs it.

Rules:
- A summary is a mapping from section key to items, in order. Prose is made from it; it is never made from prose.
- Merging keeps the newest word: an item done leaves "in progress" and "blocked"; equal items stand once.
- Empty sections are left out of the rendering.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

Sections = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Section:
    """`parent` groups sections as `###` parts under one `##` heading; `about` tells a model what belongs there."""

    key: str
    title: str
    about: str
    parent: str = ""


SECTIONS: Final[tuple[Section, ...]] = (
    Section("goal", "Goal", "what the person wants to achieve, in their terms"),
    Section("constraints", "Constraints & Preferences", "rules, limits and wishes that still hold"),
    Section("done", "Done", "finished work, with the names and numbers it produced", "Progress"),
    Section("in_progress", "In Progress", "what is being worked on now and how far it is", "Progress"),
    Section("blocked", "Blocked", "what cannot go on, and what it waits for", "Progress"),
    Section("decisions", "Key Decisions", "choices made, and why"),
    Section("files", "Relevant Files", "files read, written or planned, each with what it holds"),
    Section("errors", "Errors & Fixes", "errors met, word for word, and what mended them"),
    Section("next_steps", "Next Steps", "what comes next, most urgent first"),
    Section("critical", "Critical Context", "identifiers, values and facts that the work cannot go on without"),
)
SECTION_KEYS: Final = tuple(section.key for section in SECTIONS)


@dataclass(frozen=True, slots=True)
class StructuredSummary:
    """A summary as data. `sections` has known keys only, and no empty ones."""

    sections: Sections = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.sections)

    def render(self) -> str:
        """Markdown: `##` for sections, `###` for parts of Progress, one `-` per item."""
        out: list[str] = []
        parent = ""
        for section in SECTIONS:
            items = self.sections.get(section.key)
            if not items:
                continue
            heading = f"## {section.title}"
            if section.parent:
                heading = (
                    f"### {section.title}" if section.parent == parent else f"## {section.parent}\n### {section.title}"
                )
            parent = section.parent
            out.append(heading + "".join("\n- " + item.replace("\n", "\n  ") for item in items))
        return "\n\n".join(out)


def structured(sections: Mapping[str, Iterable[str]]) -> StructuredSummary:
    """A summary from what a model or a program gave: unknown keys dropped, blank and repeated items too."""
    kept: dict[str, tuple[str, ...]] = {}
    for key in SECTION_KEYS:
        items = _distinct(item.strip() for item in sections.get(key, ()))
        if items:
            kept[key] = items
    return StructuredSummary(kept)


def merge(earlier: StructuredSummary, later: StructuredSummary) -> StructuredSummary:
    """Both in one, without a model: what `later` finished is no longer open; its goal and next steps come first."""
    finished = {_same(item) for item in later.sections.get("done", ())}
    out: dict[str, Iterable[str]] = {}
    for key in SECTION_KEYS:
        before, after = earlier.sections.get(key, ()), later.sections.get(key, ())
        if key in ("in_progress", "blocked", "next_steps"):
            before = tuple(item for item in before if _same(item) not in finished)
        out[key] = (*after, *before) if key in ("goal", "next_steps") else (*before, *after)
    return structured(out)


def _distinct(items: Iterable[str]) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for item in items:
        if item:
            seen.setdefault(_same(item), item)
    return tuple(seen.values())


def _same(item: str) -> str:
    return re.sub(r"\W+", " ", item).strip().casefold()


__all__ = ["SECTIONS", "SECTION_KEYS", "Section", "Sections", "StructuredSummary", "merge", "structured"]

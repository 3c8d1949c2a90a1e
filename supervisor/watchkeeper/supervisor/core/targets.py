"""Targets: the pages of one task, as tabs.

Rules: owns which targets exist, their titles and URLs, which tab is selected and which renderer has crashed. A tab
keeps its short name (``t1``) for its whole life; a tab that opens by itself never steals the selection.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Target/#type-TargetInfo
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from . import fields


@dataclass(frozen=True, slots=True)
class Target:
    """A page. ``tab_id`` is ours and short; ``opener_id`` is the target that opened it, or ``""``."""

    target_id: str
    tab_id: str
    url: str = ""
    title: str = ""
    opener_id: str = ""
    crashed: bool = False


@dataclass(frozen=True, slots=True)
class Targets:
    pages: Mapping[str, Target] = field(default_factory=dict)
    selected: str | None = None
    opened: int = 0
    """How many tabs this task has ever had; numbers the next one."""

    def by_name(self, name: str) -> Target | None:
        """Look a page up by target id or tab id."""
        return self.pages.get(name) or next((page for page in self.pages.values() if page.tab_id == name), None)

    def related(self, target_id: str) -> frozenset[str]:
        """The tabs that opened each other, this one included: they may share a process, and then wait together."""
        found = {target_id}
        while True:
            more = {
                page.target_id
                for page in self.pages.values()
                if page.opener_id in found
                or any(self.pages[t].opener_id == page.target_id for t in found & self.pages.keys())
            } - found
            if not more:
                return frozenset(found)
            found |= more


def added(targets: Targets, info: Mapping[str, Any]) -> Targets:
    """A page target appeared, or is described anew."""
    target_id = fields.text(info, "targetId")
    if not target_id:
        return targets
    known = targets.pages.get(target_id)
    if known is None:
        number = targets.opened + 1
        known = Target(target_id, f"t{number}", opener_id=fields.text(info, "openerId"))
        targets = replace(targets, opened=number, selected=targets.selected or target_id)
    return _put(targets, replace(known, url=fields.text(info, "url"), title=fields.text(info, "title")))


def described(targets: Targets, info: Mapping[str, Any]) -> Targets:
    """``Target.targetInfoChanged`` of a page that is already known; others are not ours."""
    return added(targets, info) if fields.text(info, "targetId") in targets.pages else targets


def removed(targets: Targets, target_id: str) -> Targets:
    """A page closed. Its opener is selected in its place, or else the youngest tab that is left."""
    gone = targets.pages.get(target_id)
    if gone is None:
        return targets
    pages = {key: page for key, page in targets.pages.items() if key != target_id}
    selected = targets.selected
    if selected == target_id:
        selected = gone.opener_id if gone.opener_id in pages else next(reversed(pages), None)
    return replace(targets, pages=pages, selected=selected)


def crashed(targets: Targets, target_id: str, is_crashed: bool) -> Targets:
    page = targets.pages.get(target_id)
    if page is None or page.crashed == is_crashed:
        return targets
    return _put(targets, replace(page, crashed=is_crashed))


def selected(targets: Targets, target_id: str) -> Targets:
    return replace(targets, selected=target_id) if target_id in targets.pages else targets


def _put(targets: Targets, page: Target) -> Targets:
    if targets.pages.get(page.target_id) == page:
        return targets
    return replace(targets, pages={**targets.pages, page.target_id: page})

"""Growing the DAG of one conversation: leaves over messages, summaries over summaries.

Each node is stored by itself, in one step; stopping anywhere leaves a valid DAG. Where another process was faster its
node is as good as ours.
"""

from __future__ import annotations

from watchkeeper.context.core.messages import INSTRUCTION_ROLES
from watchkeeper.context.core.validity import has_thinking
from watchkeeper.context.errors import Cancelled
from watchkeeper.context.store import ArchiveError, ArchiveStore, Node, Stored
from watchkeeper.context.tokens import estimate, message_tokens

from .condense import Brief, Condensed, condense
from .dag import Item, fresh_start, leaves, to_condense

LEAST_LEAF = 1_000
"""Tokens; less is not worth a summary."""
_FROM_ORIGINALS = 400_000  # tokens that a summary of summaries reads again at most


class Grower:
    """Makes nodes of a conversation. What a model failed to add is returned, for people.

    Attributes:
        leaf_tokens, node_tokens, fanout: see `LcmSettings`.
    """

    def __init__(self, store: ArchiveStore, name: str) -> None:
        self.name = name
        self.leaf_tokens = 20_000
        self.node_tokens = 2_000
        self.fanout = 4
        self._store = store
        self._items: dict[int, Item] = {}

    def grow(self, fresh: int, brief: Brief, *, remainder: bool) -> tuple[str, ...]:
        """Make the leaves that are due, then the summaries above them.

        Args:
            fresh: tokens of the newest messages that stay raw.
            remainder: also make a leaf of what is less than one, before the fresh ones.

        Raises:
            Cancelled: the nodes made so far stay.
        """
        failures: list[str] = []
        roots = self._store.roots(self.name)
        begin = roots[-1].last + 1 if roots else 0
        items = [self._item(stored) for stored in self._store.messages(self.name, begin)]
        while not roots and items and items[0].role in INSTRUCTION_ROLES:
            items.pop(0)
        sizes = {item.position: item.tokens for item in items}
        for first, last in leaves(items, fresh_start(items, fresh), self.leaf_tokens):
            source = sum(sizes[position] for position in range(first, last + 1))
            if source < (LEAST_LEAF if remainder else self.leaf_tokens):
                break
            if brief.cancelled():
                raise Cancelled
            covered = list(self._store.messages(self.name, first, last))
            budget = max(150, min(self.node_tokens, source // 8))
            made = condense([stored.message() for stored in covered], source, budget, brief)
            failures += self._add(0, made, source, covered[0], covered[-1], ())
        while group := to_condense(self._store.roots(self.name), self.fanout):
            failures += self._merge(group, brief)
        return tuple(failures)

    def merge_half(self, brief: Brief) -> tuple[str, ...]:
        """One summary of the older half of the roots, when everything else was not enough."""
        roots = self._store.roots(self.name)
        return self._merge(tuple(roots[: max(2, len(roots) // 2)]), brief) if len(roots) > 1 else ()

    def _merge(self, group: tuple[Node, ...], brief: Brief) -> tuple[str, ...]:
        if brief.cancelled():
            raise Cancelled
        source = sum(node.source_tokens for node in group)
        children = sum(node.tokens for node in group)
        if source <= _FROM_ORIGINALS:
            messages = [s.message() for s in self._store.messages(self.name, group[0].first, group[-1].last)]
        else:
            messages = [{"role": "assistant", "content": node.text} for node in group]
        made = condense(messages, children, max(200, min(self.node_tokens * 2, children // 2)), brief)
        ends = [next(iter(self._store.messages(self.name, p, p))) for p in (group[0].first, group[-1].last)]
        ids = tuple(node.id for node in group)
        return self._add(max(node.depth for node in group) + 1, made, source, ends[0], ends[1], ids)

    def _add(
        self, depth: int, made: Condensed, source: int, first: Stored, last: Stored, children: tuple[int, ...]
    ) -> tuple[str, ...]:
        places = (first.position, last.position, first.at, last.at)
        try:
            self._store.add_node(Node(0, self.name, depth, made.text, made.tokens, source, *places), children)
        except ArchiveError as error:
            if error.code != "node_overlaps":
                raise
        return (made.failure,) if made.failure else ()

    def _item(self, stored: Stored) -> Item:
        item = self._items.get(stored.position)
        if item is None:
            message = stored.message()
            item = Item(stored.position, stored.role, message_tokens(message, estimate), has_thinking(message))
            self._items[stored.position] = item
        return item

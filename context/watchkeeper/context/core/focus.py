"""What belongs to a topic: how much of the topic's words a text has.

Rules this module keeps:

- Case does not matter; in scripts without spaces between words, pairs of characters stand for words.
- Identifiers in a topic count whole.
"""

from __future__ import annotations

import re
from typing import Final

from watchkeeper.context.core.anchors import extract

_WORD: Final = re.compile(r"[^\W_]{3,}")
_UNSPACED: Final = re.compile(r"[\u2e80-\u9fff\u3040-\u30ff]+")


class Focus:
    """A topic to measure texts against."""

    def __init__(self, topic: str) -> None:
        topic = topic.casefold()
        runs = _UNSPACED.findall(topic)
        pairs = {run[i : i + 2] for run in runs for i in range(max(1, len(run) - 1))}
        words = {word for word in _WORD.findall(_UNSPACED.sub(" ", topic))}
        self.terms = frozenset(pairs | words | set(extract(topic)))

    def share(self, text: str) -> float:
        """The share of the topic's terms that the text has, 0 to 1."""
        if not self.terms:
            return 0.0
        text = text.casefold()
        return sum(term in text for term in self.terms) / len(self.terms)

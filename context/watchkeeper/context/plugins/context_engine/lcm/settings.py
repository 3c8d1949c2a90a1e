"""Settings of the engine: `context.engines.lcm`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from watchkeeper.context.errors import InvalidArgument


@dataclass(frozen=True)
class LcmSettings:
    """All optional.

    Attributes:
        path: the archive: a file, or a postgresql:// URL; empty for the default file.
        soft: share of the hard threshold above which summaries are prepared in the background.
        hard: share of the context length above which `compress` is due.
        goal: share of the hard threshold that the result stays below.
        leaf_tokens: raw messages under one summary, about.
        node_tokens: the most tokens of a summary of messages; one of summaries may have twice as many.
        fanout: how many summaries become one.
        fresh_tokens: the newest messages that stay raw; 0 for an eighth of the context length, at most 24,000.
        large_tokens: a message above it is set aside and described.
        background: whether anything is prepared in the background.
        keep_days: conversations last added to longer ago are deleted when one begins; 0 keeps them for ever.
        keep_megabytes: then the oldest are, until all fit; 0 for no limit.
    """

    path: str = ""
    soft: float = 0.6
    hard: float = 0.75
    goal: float = 0.6
    leaf_tokens: int = 20_000
    node_tokens: int = 2_000
    fanout: int = 4
    fresh_tokens: int = 0
    large_tokens: int = 25_000
    background: bool = True
    keep_days: float = 0.0
    keep_megabytes: float = 0.0

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> LcmSettings:
        """Settings from what a person wrote.

        Raises:
            InvalidArgument: an unknown name, or a value that cannot be used.
        """
        known = {field.name: field for field in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                raise InvalidArgument(f"context.engines.lcm has no setting {name!r}", f"there are {', '.join(known)}")
            wanted = type(known[name].default)
            fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
            if wanted is float and isinstance(value, int) and not isinstance(value, bool):
                fits, value = True, float(value)
            if not fits:
                raise InvalidArgument(f"context.engines.lcm.{name} must be a {wanted.__name__}, not {value!r:.40}")
            values[name] = value
        settings = cls(**values)
        for name, least, most in (
            ("soft", 0.05, 1.0), ("hard", 0.05, 0.95), ("goal", 0.1, 0.95), ("leaf_tokens", 1_000, 1_000_000),
            ("node_tokens", 150, 50_000), ("fanout", 2, 32), ("fresh_tokens", 0, 1_000_000),
            ("large_tokens", 500, 1_000_000), ("keep_days", 0, 100_000), ("keep_megabytes", 0, 10_000_000),
        ):  # fmt: skip
            value = getattr(settings, name)
            if not least <= value <= most:
                raise InvalidArgument(f"context.engines.lcm.{name} is {value}, which is not between {least} and {most}")
        return settings

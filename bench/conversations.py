"""Conversations made for measurements: calls and results about files that exist nowhere, the same on every machine."""

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

from watchkeeper.context.tokens import estimate, message_tokens

SYLLABLES = [c + v for c in "bcdfghklmnprstvz" for v in "aeiou"]


def vocabulary(rng: random.Random, size: int = 8_000) -> tuple[list[str], list[float]]:
    """Made-up words, and how often each is used: the n-th about 1/n as often as the first, as in real text."""
    words = sorted({"".join(rng.choices(SYLLABLES, k=rng.randrange(2, 5))) for _ in range(size)})
    rng.shuffle(words)
    return words, list(itertools.accumulate(1 / (n + 3) for n in range(len(words))))


def turns(seed: int = 1, lines: tuple[int, int] = (20, 120)) -> Iterator[list[dict[str, Any]]]:
    """Turns without end: a question, a call, its result of so many lines, an answer."""
    rng = random.Random(seed)
    words, weights = vocabulary(rng)

    def some(count: int) -> list[str]:
        return rng.choices(words, cum_weights=weights, k=count)

    for n in itertools.count(1, 4):
        path = f"src/{'/'.join(some(2))}_{n}.py"
        function = {"name": "read_file", "arguments": json.dumps({"path": path})}
        result = "\n".join(
            f"def {some(1)[0]}_{rng.randrange(10**6)}({', '.join(some(3))}):  # {' '.join(some(6))}"
            for _ in range(rng.randrange(*lines))
        )
        call = {"id": f"c{n}", "type": "function", "function": function}
        yield [
            {"role": "user", "content": f"Why does {some(1)[0]} fail with E{n}? See {path}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": result},
            {"role": "assistant", "content": f"It is the {some(1)[0]} in {path}; fixed in {rng.randrange(16**7):07x}."},
        ]


def of_tokens(tokens: int, seed: int = 1) -> list[dict[str, Any]]:
    """A conversation of about so many tokens."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You mend programs."}]
    total = 0
    for turn in turns(seed):
        if total >= tokens:
            break
        messages += turn
        total += sum(message_tokens(m, estimate) for m in turn)
    return messages


def of_messages(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """A conversation of so many messages or up to three more, with short results."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You mend programs."}]
    for turn in turns(seed, (3, 20)):
        if len(messages) >= count:
            break
        messages += turn
    return messages

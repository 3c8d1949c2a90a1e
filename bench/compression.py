"""What compression keeps, costs and takes, on the conversations that the project ships.

    python bench/compression.py [--budgets 2000,4000,8000] [--rounds 4] [--json FILE]

For each sample and budget: tokens of the result; the share of the facts needed later that it still shows (`needed`),
and that it still shows next to words which explain them (`ground`); the share of what people typed (`typed`);
violations of provider rules; milliseconds for 100,000 tokens, the fastest of three runs. Baselines: the last messages
that fit (`last`), and all but the newest three tool results cleared (`clear`, which has a size of its own).
`rounds` compacts again and again while the conversation grows, and tells what is left of the facts after each round.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from watchkeeper.context import compress_messages
from watchkeeper.context.core.messages import Message, texts_of
from watchkeeper.context.core.pruning import prune
from watchkeeper.context.core.regions import blocks_back
from watchkeeper.context.core.repair import repair
from watchkeeper.context.core.validity import check
from watchkeeper.context.samples import SAMPLES, Sample, sample
from watchkeeper.context.tokens import tokenizer_for, total_tokens

COUNT = tokenizer_for().count
Method = Callable[[list[Message], int], list[Message]]


def ours(messages: list[Message], budget: int) -> list[Message]:
    return compress_messages(messages, budget).messages


def last(messages: list[Message], budget: int) -> list[Message]:
    kept: list[Message] = []
    for start, end in blocks_back(messages, 1):
        block = messages[start:end]
        if total_tokens([*messages[:1], *block, *kept], COUNT) > budget:
            break
        kept = [*block, *kept]
    return repair([*messages[:1], *kept])[0]


def clear(messages: list[Message], budget: int) -> list[Message]:
    results = [i for i, m in enumerate(messages) if m["role"] == "tool"]
    return prune(messages, stop=results[-3] if len(results) > 3 else 0).messages


METHODS: dict[str, Method] = {"watchkeeper": ours, "last": last, "clear": clear}


def shown(messages: list[Message]) -> str:
    return "\n".join(text for m in messages if m["role"] != "system" for text in texts_of(m))


def grounded(fact: str, before: str, after: str) -> bool:
    """Whether the fact stands next to at least four of the words that it stood next to before."""

    def windows(text: str) -> list[set[str]]:
        places = [m.start() for m in re.finditer(re.escape(fact), text)][:40]
        return [
            set(
                re.findall(
                    r"[^\W\d_]{2,}", text[max(0, at - 120) : at] + " " + text[at + len(fact) : at + len(fact) + 120]
                )
            )
            for at in places
        ]

    return any(len(a & b) >= min(4, len(a)) for a in windows(before) for b in windows(after))


def typed(messages: list[Message], after: str) -> float:
    """Share of the six-character shingles of what people typed: a measure for scripts with and without blanks."""
    text = " ".join(" ".join(texts_of(m)) for m in messages if m["role"] == "user")
    shingles = {text[i : i + 24] for i in range(0, max(1, len(text) - 24), 6)}
    return sum(s in after for s in shingles) / len(shingles)


def measure(s: Sample, method: Method, budget: int) -> dict[str, Any]:
    before_tokens = total_tokens(s.messages, COUNT)
    best = float("inf")
    out: list[Message] = []
    for _ in range(3):
        started = time.perf_counter()
        out = method(s.messages, budget)
        best = min(best, time.perf_counter() - started)
    before, after = shown(s.messages), shown(out)
    kept = [fact for fact in s.needed if fact in after]
    return {
        "before": before_tokens,
        "tokens": total_tokens(out, COUNT),
        "needed": len(kept) / len(s.needed),
        "ground": sum(grounded(fact, before, after) for fact in kept) / len(s.needed),
        "typed": typed(s.messages, after),
        "invalid": len(check(out)),
        "ms_per_100k": best * 1e8 / before_tokens,
        "missing": [fact for fact in s.needed if fact not in after],
    }


def again(name: str, budget: int, rounds: int) -> list[float]:
    """The share of a sample's facts that is left after each of several compactions with other work in between."""
    s = sample(name)
    others = [n for n in SAMPLES if n != name]
    live = s.messages
    shares = []
    for number in range(rounds):
        live = ours(live, budget)
        shares.append(sum(fact in shown(live) for fact in s.needed) / len(s.needed))
        work = [m for m in sample(others[number % len(others)]).messages if m["role"] in ("assistant", "tool")]
        live = repair([*live, *renamed(work, number)])[0]
    return shares


def renamed(messages: list[Message], number: int) -> list[Message]:
    out = json.loads(json.dumps(messages))
    for message in out:
        for call in message.get("tool_calls") or ():
            call["id"] += f"_{number}"
        if "tool_call_id" in message:
            message["tool_call_id"] += f"_{number}"
    return list(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--budgets", default="2000,4000,8000")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--json", help="write every row to this file, one JSON object a line")
    parser.add_argument("--missing", action="store_true", help="name the facts that were lost")
    arguments = parser.parse_args()
    rows = []
    columns = ("budget", "before", "tokens", "needed", "ground", "typed", "invalid", "ms/100k")
    print(f"{'sample':10} {'method':12} " + " ".join(f"{c:>7}" for c in columns))
    for name in SAMPLES:
        for method, run in METHODS.items():
            for budget in map(int, arguments.budgets.split(",")):
                row = measure(sample(name), run, budget)
                rows.append({"sample": name, "method": method, "budget": budget, **row})
                print(
                    f"{name:10} {method:12} {budget:7} {row['before']:7} {row['tokens']:7} {row['needed']:7.2f} "
                    f"{row['ground']:7.2f} {row['typed']:7.2f} {row['invalid']:7} {row['ms_per_100k']:7.0f}"
                    + (f"  {row['missing']}" if arguments.missing and row["missing"] else "")
                )
                if method == "clear":
                    break
    for name in SAMPLES:
        shares = again(name, 4_000, arguments.rounds)
        print(
            f"{name:10} needed after each of {arguments.rounds} rounds at 4,000: "
            + " ".join(f"{x:.2f}" for x in shares)
        )
    if arguments.json:
        Path(arguments.json).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()

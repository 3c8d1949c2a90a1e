"""What compression keeps, costs and takes, on the conversations that the project ships.

    python bench/compression.py [--budgets 2000,4000,8000] [--rounds 4] [--folder TRANSCRIPTS] [--json FILE]

For each sample and budget: tokens of the result; the share of the facts needed later that it still shows (`needed`),
and that it still shows next to words which explain them (`ground`); the share of what people typed (`typed`);
violations of provider rules; milliseconds for 100,000 tokens, the fastest of three runs. Baselines: the last messages
that fit (`last`), the first and the last (`ends`), lines at even distances (`uniform`), lines that share the most words
with others (`central`, in the way of TextRank), and all but the newest three tool results cleared (`clear`, which has a
size of its own). Transcripts of a folder of yours have no list of facts: for those, `needed` counts the names, paths
and numbers in what the agent wrote in the last fifth that were met before it; it is compressed without that fifth.
`rounds` compacts again and again while the conversation grows, and tells what is left of the facts after each round.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from watchkeeper.context import compress_messages
from watchkeeper.context.core.anchors import extract
from watchkeeper.context.core.messages import Message, texts_of
from watchkeeper.context.core.pruning import prune
from watchkeeper.context.core.regions import blocks_back
from watchkeeper.context.core.repair import repair
from watchkeeper.context.core.validity import check
from watchkeeper.context.samples import SAMPLES, Sample, sample
from watchkeeper.context.tokens import tokenizer_for, total_tokens
from watchkeeper.context.transcripts import load_transcript

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


def ends(messages: list[Message], budget: int) -> list[Message]:
    """The first messages in a third of the budget, and the last ones in the rest."""
    head: list[Message] = []
    for message in messages[1:]:
        if total_tokens([*head, message], COUNT) > budget // 3:
            break
        head.append(message)
    rest = last([*messages[:1], *messages[1 + len(head) :]], budget - total_tokens(head, COUNT))
    return repair([*messages[:1], *head, *rest[1:]])[0]


def _lines(messages: list[Message]) -> list[str]:
    """Every line once."""
    return list(dict.fromkeys(line for m in messages[1:] for text in texts_of(m) for line in text.split("\n") if line))


def _as_summary(messages: list[Message], lines: Iterable[int], every: list[str], budget: int) -> list[Message]:
    """The lines chosen, as many as fit and in their order, in one message before the last request."""
    request = next((m for m in reversed(messages) if m["role"] == "user"), messages[-1])
    left = budget - total_tokens([*messages[:1], request], COUNT) - 8
    kept: list[int] = []
    for number in lines:
        cost = COUNT(every[number]) + 1
        if cost <= left:
            kept.append(number)
            left -= cost
    text = "\n".join(every[number] for number in sorted(kept))
    return [*messages[:1], {"role": "user", "content": text}, {"role": "assistant", "content": "I see."}, request]


def uniform(messages: list[Message], budget: int) -> list[Message]:
    """Lines at even distances."""
    every = _lines(messages)
    step = max(1, round(sum(len(line) for line in every) / 3.5 / budget))
    order = [number for start in range(step) for number in range(start, len(every), step)]
    return _as_summary(messages, order, every, budget)


def central(messages: list[Message], budget: int) -> list[Message]:
    """Lines that share the most with the others, in the way of TextRank: a walk over words that lines have in common
    (https://aclanthology.org/W04-3252/), worth per token first."""
    every = _lines(messages)
    words = [set(re.findall(r"[^\W_]{3,}", line.casefold())) for line in every]
    holders: dict[str, int] = Counter(word for line in words for word in line)
    rank = [1.0] * len(every)
    for _ in range(10):  # lines and words hand their rank to each other
        weight: dict[str, float] = defaultdict(float)
        for line, value in zip(words, rank, strict=True):
            for word in line:
                weight[word] += value / len(line)
        rank = [0.15 + 0.85 * sum(weight[word] / holders[word] for word in line) for line in words]
    order = sorted(range(len(every)), key=lambda n: -rank[n] / (len(every[n]) + 10))
    return _as_summary(messages, order, every, budget)


METHODS: dict[str, Method] = {
    "watchkeeper": ours,
    "last": last,
    "ends": ends,
    "uniform": uniform,
    "central": central,
    "clear": clear,
}


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


def transcripts(folder: Path) -> dict[str, Sample]:
    """Conversations of a folder, each cut before its last fifth; what the agent then needed is what it then wrote."""
    found: dict[str, Sample] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".json", ".jsonl"):
            continue
        messages = list(load_transcript(path).messages)
        cut = len(messages) * 4 // 5
        before, after = messages[:cut], messages[cut:]
        wrote = "\n".join(text for m in after if m["role"] == "assistant" for text in texts_of(m))
        known = shown(before)
        needed = [name for name in extract(wrote) if name in known]
        if len(before) > 4 and needed:
            found[path.stem[:10]] = Sample(repair(before)[0], needed)
    return found


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


def rows_of(samples: dict[str, Sample], budgets: Sequence[int], told: Callable[[dict[str, Any]], None]) -> None:
    """Measure every sample with every method at every budget, and tell each row as soon as it is there."""
    for name, one in samples.items():
        for method, run in METHODS.items():
            for budget in budgets:
                told({"sample": name, "method": method, "budget": budget, **measure(one, run, budget)})
                if method == "clear":
                    break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", default="2000,4000,8000", help="tokens of the result")
    parser.add_argument("--rounds", type=int, default=4, help="compactions of the test over rounds")
    parser.add_argument("--folder", type=Path, help="transcripts of yours, instead of the samples")
    parser.add_argument("--json", help="write every row to this file, one JSON object a line")
    parser.add_argument("--missing", action="store_true", help="name the facts that were lost")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    columns = ("budget", "before", "tokens", "needed", "ground", "typed", "invalid", "ms/100k")
    print(f"{'sample':10} {'method':12} " + " ".join(f"{c:>7}" for c in columns))

    def told(row: dict[str, Any]) -> None:
        rows.append(row)
        print(
            f"{row['sample']:10} {row['method']:12} {row['budget']:7} {row['before']:7} {row['tokens']:7} "
            f"{row['needed']:7.2f} {row['ground']:7.2f} {row['typed']:7.2f} {row['invalid']:7} "
            f"{row['ms_per_100k']:7.0f}" + (f"  {row['missing']}" if arguments.missing and row["missing"] else "")
        )

    samples = transcripts(arguments.folder) if arguments.folder else {name: sample(name) for name in SAMPLES}
    rows_of(samples, [int(part) for part in arguments.budgets.split(",")], told)
    for name in () if arguments.folder else SAMPLES:
        shares = again(name, 4_000, arguments.rounds)
        print(
            f"{name:10} needed after each of {arguments.rounds} rounds at 4,000: "
            + " ".join(f"{x:.2f}" for x in shares)
        )
    if arguments.json:
        Path(arguments.json).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()

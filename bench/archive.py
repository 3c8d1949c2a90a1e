"""What the archive costs: a generated conversation of a million tokens, recorded, searched and given back.

    python bench/archive.py [--tokens 1000000] [--location FILE-OR-URL]

Prints seconds to record, milliseconds per search (median and 95th percentile), growth of memory while searching, and
whether every message expanded byte for byte.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from watchkeeper.context.archive import Archive, open_archive
from watchkeeper.context.tokens import estimate, message_tokens

SYLLABLES = [c + v for c in "bcdfghklmnprstvz" for v in "aeiou"]


def vocabulary(rng: random.Random, size: int = 8_000) -> tuple[list[str], list[float]]:
    """Made-up words, and how often each is used: the n-th about 1/n as often as the first, as in real text."""
    words = sorted(
        {"".join(rng.choices(SYLLABLES, k=rng.randrange(2, 5))) for _ in range(size)}, key=lambda _: rng.random()
    )
    return words, list(itertools.accumulate(1 / (n + 3) for n in range(len(words))))


def generated(tokens: int, seed: int = 1) -> list[dict[str, Any]]:
    """Calls and results about files that exist nowhere, of about `tokens` tokens."""
    rng = random.Random(seed)
    words, weights = vocabulary(rng)

    def some(count: int) -> list[str]:
        return rng.choices(words, cum_weights=weights, k=count)

    messages: list[dict[str, Any]] = [{"role": "system", "content": "You mend programs."}]
    total = 0
    while total < tokens:
        n = len(messages)
        path = f"src/{'/'.join(some(2))}_{n}.py"
        function = {"name": "read_file", "arguments": json.dumps({"path": path})}
        lines = [
            f"def {some(1)[0]}_{rng.randrange(10**6)}({', '.join(some(3))}):  # {' '.join(some(6))}"
            for _ in range(rng.randrange(20, 120))
        ]
        new: list[dict[str, Any]] = [
            {"role": "user", "content": f"Why does {some(1)[0]} fail with E{n}? See {path}."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{n}", "content": "\n".join(lines)},
            {
                "role": "assistant",
                "content": f"It is the {some(1)[0]} in {path}; fixed in {rng.randrange(16**7):07x}.",
            },
        ]
        messages += new
        total += sum(message_tokens(m, estimate) for m in new)
    return messages


def memory() -> float:
    """Megabytes that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * 4096 / 1e6


def measure(archive: Archive, messages: list[dict[str, Any]]) -> dict[str, float]:
    """Record, search, expand."""
    start = time.perf_counter()
    archive.record("bench", messages)
    recorded = time.perf_counter() - start
    before = memory()
    rng = random.Random(2)
    words, weights = vocabulary(random.Random(1))
    times = []
    for _ in range(100):
        question = " ".join(rng.choices(words, cum_weights=weights, k=30))
        start = time.perf_counter()
        archive.search(question, session="bench")
        times.append(1000 * (time.perf_counter() - start))
    grown = memory() - before
    wrong = 0
    for position, handle in archive.handles("bench").items():
        text, cursor, whole = "", "", None
        while True:
            page = archive.expand(handle, max_tokens=4_000, count=estimate, cursor=cursor)
            whole = page.messages[0][1] if page.messages else whole
            text += page.part[1] if page.part else ""
            cursor = page.next
            if not cursor:
                break
        wrong += json.dumps(whole or json.loads(text)) != json.dumps(messages[position])
    return {
        "seconds to record": recorded,
        "ms per search, median": statistics.median(times),
        "ms per search, 95 %": sorted(times)[94],
        "MB grown while searching": grown,
        "messages not byte-exact": wrong,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--location", help="a file or a postgresql:// URL; else a temporary file")
    arguments = parser.parse_args()
    messages = generated(arguments.tokens)
    with tempfile.TemporaryDirectory() as folder:
        archive = open_archive(arguments.location or Path(folder) / "archive.db")
        try:
            archive.forget("bench")
            for name, value in measure(archive, messages).items():
                sys.stdout.write(f"{name:26} {value:10.2f}\n")
            archive.forget("bench")
        finally:
            archive.close()


if __name__ == "__main__":
    main()

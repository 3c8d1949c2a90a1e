"""What the archive costs: a generated conversation of a million tokens, recorded, searched and given back.

    python -m bench.archive [--tokens 1000000] [--location FILE-OR-URL]

Prints seconds to record, milliseconds per search (median and 95th percentile), growth of memory while searching, and
whether every message expanded byte for byte.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.conversations import of_tokens, vocabulary

from watchkeeper.context.archive import Archive, open_archive
from watchkeeper.context.tokens import estimate


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
    messages = of_tokens(arguments.tokens)
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

"""How costs grow as work grows: page size, frames, session length, dialogs, console, tasks, conversations, archive.

Rules: each line is one cost over one size, measured through the server as a client sees it, or through the library
where no server takes part. The exponent k of cost = a · size^k is fitted over the upper half (``figures.exponent``);
what it should be at most stands beside it: 1 where all of the input is read, 0 where the cost must not depend on it.
"""

import contextlib
import gc
import multiprocessing
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import pages as page_texts
from bench.client import Client, Reply
from bench.conversations import of_messages, of_tokens
from bench.figures import exponent
from bench.pages import Pages
from bench.servers import Installed

from watchkeeper.context import compress_messages, tokenizer_for
from watchkeeper.context.archive import open_archive

CALL_S = 240.0
FASTEST_OF = 3
"""Where no browser takes part, noise only ever adds: the fastest of these is told."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Line:
    """One cost over one size. ``most`` is the exponent that would be right."""

    picture: str
    name: str
    size: str
    unit: str
    most: float
    points: tuple[tuple[float, float], ...]

    @property
    def exponent(self) -> float | None:
        return exponent(self.points)


@dataclass(frozen=True)
class Extent:
    """How far each size goes."""

    elements: tuple[int, ...]
    frames: tuple[int, ...]
    navigations: int
    dialogs: int
    console: tuple[int, ...]
    messages: tuple[int, ...]
    tokens: tuple[int, ...]
    tasks: tuple[int, ...]
    repeats: int


FULL = Extent(
    elements=(100, 1_000, 10_000, 50_000, 200_000),
    frames=(1, 10, 50, 100, 200),
    navigations=1_000,
    dialogs=300,
    console=(100, 1_000, 10_000, 100_000),
    messages=(100, 500, 2_000, 5_000, 20_000),
    tokens=(10_000, 50_000, 200_000, 1_000_000),
    tasks=(1, 2, 5, 10, 20, 50),
    repeats=5,
)
QUICK = Extent(
    elements=(100, 200, 500, 1_000),
    frames=(1, 2, 4, 8),
    navigations=11,
    dialogs=11,
    console=(10, 20, 50, 100),
    messages=(20, 50, 100, 200),
    tokens=(2_000, 5_000, 10_000, 20_000),
    tasks=(),
    repeats=1,
)


def measure(ours: Installed, pages: Pages, extent: Extent, progress: Progress) -> list[Line]:
    """All lines."""
    lines: list[Line] = []
    for part in (_pages, _frames, _session, _dialogs, _console):
        with Client(ours.command, ours.environment) as client:
            client.initialize()
            lines += part(client, pages, extent, progress)
    lines += _conversations(extent, progress)
    lines += _archives(extent, progress)
    if extent.tasks:
        lines += _tasks(extent, progress)
    return lines


def _call(client: Client, tool: str, arguments: Mapping[str, Any]) -> Reply:
    reply = client.call(tool, arguments, within=CALL_S)
    if reply.error:
        raise RuntimeError(f"{tool}: {reply.text[:300] or f'no answer within {CALL_S:g} s'}")
    return reply


def _ms(replies: Sequence[Reply]) -> float:
    return statistics.median(reply.seconds for reply in replies) * 1000


def _pages(client: Client, pages: Pages, extent: Extent, progress: Progress) -> list[Line]:
    count = tokenizer_for("gpt-4").count
    first, whole, tokens, opened = [], [], [], []
    for elements in extent.elements:
        progress(f"a page of {elements:,} elements")
        url = pages.page("/grown", page_texts.links(elements // 2))
        opened.append((elements, _ms([_call(client, "browser_navigate", {"url": url, "timeout": 200})])))
        looks = [_call(client, "browser_snapshot", {}) for _ in range(extent.repeats + 1)]
        first.append((elements, _ms(looks[1:])))
        tokens.append((elements, count(looks[-1].text)))
        most = [_call(client, "browser_snapshot", {"max_tokens": 200_000}) for _ in range(extent.repeats)]
        whole.append((elements, _ms(most)))
    about = ("page", "elements")
    return [
        Line(about[0], "snapshot, 6,000 tokens at most", about[1], "ms", 1, tuple(first)),
        Line(about[0], "snapshot, 200,000 tokens at most", about[1], "ms", 1, tuple(whole)),
        Line(about[0], "navigate", about[1], "ms", 1, tuple(opened)),
        Line("page-tokens", "snapshot as it comes", about[1], "tokens", 0, tuple(tokens)),
    ]


def _frames(client: Client, pages: Pages, extent: Extent, progress: Progress) -> list[Line]:
    looks, clicks = [], []
    for frames in extent.frames:
        progress(f"a page of {frames} frames")
        inner = pages.page("/framed", "<button>Inner</button>")
        url = pages.page("/frames", f"<h1>Around</h1>{f'<iframe src={inner}></iframe>' * frames}")
        _call(client, "browser_navigate", {"url": url, "timeout": 200})
        replies = [_call(client, "browser_snapshot", {"max_tokens": 200_000}) for _ in range(extent.repeats + 1)]
        looks.append((frames, _ms(replies[1:])))
        clicks.append((frames, _ms([_call(client, "browser_evaluate", {"expression": "1"}) for _ in range(5)])))
    return [
        Line("frames", "snapshot", "frames", "ms", 1, tuple(looks)),
        Line("frames", "evaluate in the page", "frames", "ms", 0, tuple(clicks)),
    ]


def _marks(total: int) -> list[int]:
    """Where a long series is looked at: 1, 3, 10, 30 … and its end."""
    marks = [n for n in (1, 3, 10, 30, 100, 300, 1_000, 3_000) if n < total]
    return [*marks, total]


def _session(client: Client, pages: Pages, extent: Extent, progress: Progress) -> list[Line]:
    progress(f"{extent.navigations:,} navigations in one task")
    took: list[Reply] = []
    latency, memory = [], []
    for number in range(1, extent.navigations + 1):
        took.append(_call(client, "browser_navigate", {"url": pages.url(f"/?{number}")}))
        if number in _marks(extent.navigations):
            latency.append((number, _ms(took[-max(1, number // 3) :])))
            memory.append((number, client.memory_mb()))
    return [
        Line("session", "navigate", "navigations before", "ms", 0, tuple(latency)),
        Line("session-memory", "memory of the server", "navigations before", "MB", 0, tuple(memory)),
    ]


def _dialogs(client: Client, pages: Pages, extent: Extent, progress: Progress) -> list[Line]:
    progress(f"{extent.dialogs} dialogs in one page")
    _call(client, "browser_navigate", {"url": pages.url("/")})
    opened: list[Reply] = []
    answered: list[Reply] = []
    first, second = [], []
    for number in range(1, extent.dialogs + 1):
        opened.append(client.call("browser_evaluate", {"expression": f"confirm('number {number}')"}, within=CALL_S))
        answered.append(_call(client, "browser_dialog", {"action": "accept"}))
        if number in _marks(extent.dialogs):
            first.append((number, _ms(opened[-max(1, number // 3) :])))
            second.append((number, _ms(answered[-max(1, number // 3) :])))
    return [
        Line("session", "a dialog is told", "dialogs before", "ms", 0, tuple(first)),
        Line("session", "a dialog is answered", "dialogs before", "ms", 0, tuple(second)),
    ]


def _console(client: Client, pages: Pages, extent: Extent, progress: Progress) -> list[Line]:
    _call(client, "browser_navigate", {"url": pages.url("/")})
    taken, asked, memory = [], [], []
    for lines in extent.console:
        progress(f"{lines:,} lines on the console")
        loop = f"for (let n = 0; n < {lines}; n++) console.log('line ' + n)"
        script = f"{loop}; console.error('the last of {lines}'); 1"
        began = time.perf_counter()
        _call(client, "browser_evaluate", {"expression": script, "timeout": 200})
        # The last line has come when the console shows it.
        until = began + CALL_S
        while f"the last of {lines}" not in (reply := _call(client, "browser_console", {})).text:
            if time.perf_counter() > until:
                raise RuntimeError("the last line never came")
        taken.append((lines, (time.perf_counter() - began) * 1000))
        asked.append((lines, reply.seconds * 1000))
        memory.append((lines, client.memory_mb()))
    return [
        Line("console", "until the last line is there", "lines", "ms", 1, tuple(taken)),
        Line("console", "browser_console", "lines", "ms", 0, tuple(asked)),
        Line("session-memory", "memory of the server", "console lines before", "MB", 0, tuple(memory)),
    ]


# --- without a server


def _conversations(extent: Extent, progress: Progress) -> list[Line]:
    took, peak = [], []
    for messages in extent.messages:
        progress(f"a conversation of {messages:,} messages")
        ms, mb = _compressed(messages)
        took.append((messages, ms))
        peak.append((messages, mb))
    return [
        Line("conversation", "compress to 8,000 tokens", "messages", "ms", 1, tuple(took)),
        Line("conversation-memory", "objects that it makes meanwhile", "messages", "MB", 1, tuple(peak)),
    ]


def _compressed(messages: int) -> tuple[float, float]:
    """Milliseconds, and megabytes of Python objects at the most beside the conversation itself."""
    conversation = of_messages(messages)
    compress_messages(of_messages(50), 1_000)  # what is loaded once is not this conversation's cost
    fastest = min(_timed(lambda: compress_messages(conversation, 8_000)) for _ in range(FASTEST_OF))
    gc.collect()
    tracemalloc.start()
    try:
        compress_messages(conversation, 8_000)
        return fastest, tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def _timed(act: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def _archives(extent: Extent, progress: Progress) -> list[Line]:
    recorded: list[tuple[float, float]] = []
    searched: list[tuple[float, float]] = []
    stored: list[tuple[float, float]] = []
    for tokens in extent.tokens:
        progress(f"an archive of {tokens:,} tokens")
        messages = of_tokens(tokens)
        with tempfile.TemporaryDirectory() as folder:
            runs = [_archived(Path(folder) / f"{number}.db", messages) for number in range(FASTEST_OF)]
        for points, values in zip((recorded, searched, stored), zip(*runs, strict=True), strict=True):
            points.append((tokens, min(values)))
    return [
        Line("archive", "record the whole", "tokens", "ms", 1, tuple(recorded)),
        Line("archive", "search", "tokens", "ms", 1, tuple(searched)),
        Line("archive-size", "on disk", "tokens", "MB", 1, tuple(stored)),
    ]


def _archived(path: Path, messages: Sequence[dict[str, Any]]) -> tuple[float, float, float]:
    """Milliseconds to record, milliseconds a search, megabytes."""
    questions = [" ".join(str(m["content"]).split()[:8]) for m in messages if m["role"] == "user"][-20:]
    with contextlib.closing(open_archive(path)) as archive:
        recorded = _timed(lambda: archive.record("bench", list(messages)))
        searched = _timed(lambda: [archive.search(question, session="bench") for question in questions])
    return recorded, searched / len(questions), path.stat().st_size / 1e6


def _tasks(extent: Extent, progress: Progress) -> list[Line]:
    from bench import scale

    progress(f"{', '.join(map(str, extent.tasks))} tasks")
    # In a process of its own: this one holds what was measured before.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as apart:
        rows = apart.submit(scale.tasks, extent.tasks).result()

    def line(picture: str, name: str, unit: str, most: float, key: str) -> Line:
        points = tuple((row["tasks"], float(row[key])) for row in rows if row[key])
        return Line(picture, name, "tasks", unit, most, points)

    return [
        line("tasks", "all have their page", "s", 1, "all_opened_s"),
        line("tasks", "all have ended", "s", 1, "all_ended_s"),
        line("tasks-memory", "ours, whole", "MB", 1, "our_mb"),
        line("tasks-memory", "the browser's, whole", "MB", 1, "browser_mb"),
    ]


def pictures(lines: Sequence[Line]) -> Iterator[tuple[str, list[Line]]]:
    """The lines of each picture: one kind of size and one unit."""
    keys = dict.fromkeys((line.picture, line.size, line.unit) for line in lines)
    for picture, size, unit in keys:
        together = [line for line in lines if (line.picture, line.size, line.unit) == (picture, size, unit)]
        yield f"{picture}-{size.split()[0]}" if picture.startswith("session") else picture, together


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""Everything that is measured, in one command: tables, JSON and pictures in ``bench/out``.

    python -m bench                       # Watchkeeper and the peers that are installed; about half an hour
    python -m bench --quick --peers none  # Watchkeeper alone, in half a minute: does the bench still work
    python -m bench --only calls,growth   # some of: calls, behaviours, compression, growth
    python -m bench --publish             # also docs/measurements.md and its pictures

Peers are looked for on PATH, in npx's cache, or below --peers-dir; nothing is downloaded. Run it on a quiet machine.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import behaviours, calls, compression, growth, report, servers
from bench.pages import Pages

from watchkeeper.context.samples import SAMPLES, sample
from watchkeeper.supervisor.backends.find import find_browser

OUT = Path(__file__).parent / "out"
PARTS = ("calls", "behaviours", "compression", "growth")


class Progress:
    """What is measured now, of how many steps, and for how long it has been going on."""

    def __init__(self, parts: list[str]) -> None:
        self._parts = parts
        self._began = time.monotonic()

    def of(self, part: str) -> Callable[[str], None]:
        left = len(self._parts) - self._parts.index(part) - 1

        def told(what: str) -> None:
            minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
            after = f"; {left} more part{'s' if left > 1 else ''} after this" if left else "; the last part"
            print(f"{minutes:3}:{seconds:02}  {part}: {what}{after}", flush=True)

        return told


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions and small sizes")
    parser.add_argument("--only", default=",".join(PARTS), metavar="PARTS", help="some parts, with commas between")
    parser.add_argument("--peers", choices=("found", "none"), default="found", help="with others, or Watchkeeper alone")
    parser.add_argument("--peers-dir", type=Path, metavar="DIR", help="where peers are installed")
    parser.add_argument("--ours", default="", metavar="COMMAND", help="the server; default: of this Python")
    parser.add_argument("--browser", type=Path, metavar="FILE", help="the browser of all servers; default: as found")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="compression: transcripts instead of the samples")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="default: bench/out")
    parser.add_argument("--publish", action="store_true", help="also write docs/measurements.md and its pictures")
    given = parser.parse_args(arguments)
    given.only = [part for part in PARTS if part in given.only.split(",")]
    if not given.only:
        parser.error(f"--only takes some of: {', '.join(PARTS)}")
    if given.peers_dir is not None and not given.peers_dir.is_dir():
        parser.error(f"{given.peers_dir} is no folder")
    if given.publish and given.only != list(PARTS):
        parser.error("--publish writes all parts; leave --only out")
    given.browser = given.browser or find_browser()
    if given.browser is None:
        parser.error("no browser was found; name one with --browser")
    return given


def main() -> None:
    given = parsed()
    results = report.Results(about=report.about(given.browser))
    progress = Progress(given.only)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, Pages() as pages:
        browser = str(servers.browser_script(Path(folder), given.browser))
        if given.peers == "none":
            installed = servers.ours_alone(browser, Path(folder), given.ours)
        else:
            installed, results.missing = servers.found(given.peers_dir, browser, Path(folder), given.ours)
        print(f"Servers: {', '.join(server.name for server in installed)}.", flush=True)
        if results.missing:
            print(f"Not installed, so left out: {', '.join(results.missing)}.", flush=True)
        if "calls" in given.only:
            starts, runs = (1, 2) if given.quick else (7, 15)
            results.calls, results.failures, results.versions = calls.measure(
                installed, pages, starts=starts, runs=runs, progress=progress.of("calls")
            )
        if "behaviours" in given.only:
            scenes = behaviours.SCENES[:2] if given.quick else behaviours.SCENES
            results.behaviours = behaviours.measure(installed, pages, scenes, progress.of("behaviours"))
        if "compression" in given.only:
            _compression(given, results, progress.of("compression"))
        if "growth" in given.only:
            extent = growth.QUICK if given.quick else growth.FULL
            results.growth = growth.measure(installed[0], pages, extent, progress.of("growth"))
    report.write(results, given.out)
    print(f"Written: {given.out / 'measurements.md'}, measurements.json and pictures.")
    if given.publish:
        report.publish(results, report.ROOT / "docs")
        print("Written: docs/measurements.md and docs/pictures/measured-*.svg.")


def _compression(given: argparse.Namespace, results: report.Results, told: Callable[[str], None]) -> None:
    samples = compression.transcripts(given.folder) if given.folder else {name: sample(name) for name in SAMPLES}
    if not samples:
        sys.exit(f"{given.folder} has no transcripts (.json, .jsonl) that could be measured.")

    def row(one: dict[str, Any]) -> None:
        results.compression.append({key: value for key, value in one.items() if key != "missing"})

    for number, (name, one) in enumerate(samples.items(), 1):
        told(f"{name}, {number} of {len(samples)}")
        compression.rows_of({name: one}, (4_000,) if given.quick else (2_000, 4_000, 8_000), row)


if __name__ == "__main__":
    main()

"""What was measured, as Markdown, as JSON and as pictures."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.behaviours import SCENES, Verdict
from bench.calls import ROWS, Table
from bench.figures import number
from bench.growth import Line, cores, pictures
from bench.plot import plot

ROOT = Path(__file__).parent.parent
SEEN = 240
"""Characters of what a server said that are shown."""


@dataclass
class Results:
    """Everything of one run; parts that were not asked for are empty."""

    about: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    calls: Table = field(default_factory=dict)
    failures: dict[str, dict[str, str]] = field(default_factory=dict)
    behaviours: dict[str, dict[str, Verdict]] = field(default_factory=dict)
    compression: list[dict[str, Any]] = field(default_factory=list)
    growth: list[Line] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {
            "about": self.about,
            "versions": self.versions,
            "not installed": self.missing,
            "calls": {
                row: {name: figure.as_dict() for name, figure in columns.items()} for row, columns in self.calls.items()
            },
            "no figure because": self.failures,
            "behaviours": {
                scene: {name: {"passed": v.passed, "seen": v.seen} for name, v in verdicts.items()}
                for scene, verdicts in self.behaviours.items()
            },
            "compression": self.compression,
            "growth": [
                {
                    "cost": line.name,
                    "over": line.size,
                    "unit": line.unit,
                    "exponent": line.exponent and round(line.exponent, 2),
                    "at most": line.most,
                    "points": line.points,
                }
                for line in self.growth
            ],
        }


def about(browser: Path) -> dict[str, str]:
    """Where and when: what anybody who compares figures must know."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {
        "date": f"{datetime.now(UTC):%d %B %Y}",
        "commit": _told(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]) or "unknown",
        "browser": _told([str(browser), "--version"]).split(" built")[0] or "unknown",
        "python": platform.python_version(),
        "system": f"{platform.system()}, {platform.machine()}",
        "cores": str(cores()),
        "load before": f"{load:.1f}",
    }


def _told(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def write(results: Results, folder: Path) -> None:
    """``measurements.md``, ``measurements.json`` and a picture for each group of lines."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results.as_dict(), indent=1, ensure_ascii=False)
    (folder / "measurements.json").write_text(text + "\n", encoding="utf-8")
    _pictures(results.growth, folder)
    (folder / "measurements.md").write_text(markdown(results, ""), encoding="utf-8")


def publish(results: Results, docs: Path) -> None:
    """The same in the documentation: ``measurements.md``, ``pictures/measured-*.svg``, and a line in its index."""
    for old in (docs / "pictures").glob("measured-*.svg"):
        old.unlink()
    _pictures(results.growth, docs / "pictures")
    (docs / "measurements.md").write_text(markdown(results, "pictures/"), encoding="utf-8")
    index = (docs / "README.md").read_text(encoding="utf-8")
    if "(measurements.md)" not in index:
        line = "| [measurements.md](measurements.md) | what was measured, beside others, and how costs grow |\n"
        before, found, after = index.partition("| [comparison.md]")
        (docs / "README.md").write_text(before + line + found + after, encoding="utf-8")


def _pictures(lines: Sequence[Line], folder: Path) -> None:
    for name, together in pictures(lines):
        first = together[0]
        named = [
            (line.name + (f": k = {line.exponent:.2f}" if line.exponent is not None else ""), line.points)
            for line in together
        ]
        title = f"{first.unit} over {first.size}"
        (folder / f"measured-{name}.svg").write_text(plot(title, first.size, first.unit, named), encoding="utf-8")


def markdown(results: Results, where: str) -> str:
    """The page; ``where`` is the folder of its pictures."""
    load = float(results.about.get("load before", 0))
    busy = load > int(results.about.get("cores", 1)) / 2
    out = [
        "# Measurements",
        "",
        "Made by `make bench`; `python -m bench --help` says how. Figures of one run compare with each other, not with "
        "those of another machine.",
        "",
        "; ".join(f"{name}: {value}" for name, value in results.about.items()) + ".",
    ]
    if busy:
        out += ["", "**Others used the machine meanwhile: times are too long, and spreads wide.**"]
    for part in (_calls, _behaviours, _compression):
        out += part(results)
    return "\n".join([*out, *_growth(results, where)]) + "\n"


def _columns(servers: Sequence[str], first: str = "") -> list[str]:
    return [f"| {first} | {' | '.join(servers)} |", "|---" * (len(servers) + 1) + "|"]


def _calls(results: Results) -> list[str]:
    if not results.calls:
        return []
    servers = list(results.versions)
    out = ["", "## Calls", ""]
    out += [f"Versions: {', '.join(f'{name} {version}' for name, version in results.versions.items())}."]
    if results.missing:
        out += [f"Not installed here: {', '.join(results.missing)}."]
    out += [
        "Medians, in brackets least and most; servers took turns call by call. After ×: how many times "
        "Watchkeeper's. “–”: no tool for it, or it failed, which is told below. Watchkeeper's snapshots end at 6,000 "
        "tokens where nothing else is asked for, and have a cursor for the rest; the others' have no limit.",
        "",
        *_columns(servers),
    ]
    for row, columns in results.calls.items():
        ours = columns.get(servers[0])
        cells = []
        for name in servers:
            figure = columns.get(name)
            cell = "–" if figure is None else str(figure)
            if figure is not None and ours is not None and name != servers[0] and ours.median > 0:
                cell += f" ×{figure.median / ours.median:.2g}"
            cells.append(cell)
        out.append(f"| {row} | {' | '.join(cells)} |")
    counts = {len(figure.values) for columns in results.calls.values() for figure in columns.values()}
    out += ["", f"n = {min(counts)} to {max(counts)} a figure. What they begin and end with:", ""]
    out += [f"- {row}: {what}" for row, what in ROWS.items()]
    failures = [(row, name, why) for row, told in results.failures.items() for name, why in told.items()]
    if failures:
        out += ["", "No figure:", ""]
        out += [f"- {name}, {row}: {_plain(why)}" for row, name, why in failures]
    return out


def _behaviours(results: Results) -> list[str]:
    if not results.behaviours:
        return []
    servers = list(next(iter(results.behaviours.values())))
    out = ["", "## When it gets difficult", "", *_columns(servers)]
    marks = {True: "yes", False: "**no**", None: "–"}
    for scene, verdicts in results.behaviours.items():
        out.append(f"| {scene} | {' | '.join(marks[verdicts[name].passed] for name in servers)} |")
    out += ["", "A server passes when:", ""]
    out += [f"- {scene.name}: {scene.criterion}" for scene in SCENES if scene.name in results.behaviours]
    out += ["", "What was seen:", ""]
    for scene, verdicts in results.behaviours.items():
        out += [f"- {scene}, {name}: {_plain(verdict.seen)}" for name, verdict in verdicts.items()]
    return out


def _plain(text: str) -> str:
    """Words of other programs, without meaning for Markdown, as many as are read."""
    plain = " ".join(text.split()).replace("`", "'").replace("<", "‹").replace(">", "›").replace("|", "¦")
    return plain if len(plain) <= SEEN else f"{plain[:SEEN]}…"


def _compression(results: Results) -> list[str]:
    if not results.compression:
        return []
    out = [
        "",
        "## Compression",
        "",
        "Share of the facts needed later that the result still shows, for each number of tokens it may have, and what "
        "of it is next to words that explain it; over all samples.",
        "`last`: the last messages that fit; `ends`: the "
        "first and the last; `uniform`: lines at even distances; `central`: lines that share most words with others, "
        "in the way of TextRank; `clear`: all tool results but the newest three cleared, which has a size of its own.",
        "",
        "| method | tokens allowed | tokens, mean | needed | explained | typed by people | ms for 100,000 tokens |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for row in results.compression:
        groups.setdefault((row["method"], row["budget"] if row["method"] != "clear" else 0), []).append(row)
    for (method, budget), rows in groups.items():
        mean = {
            key: sum(row[key] for row in rows) / len(rows)
            for key in ("tokens", "needed", "ground", "typed", "ms_per_100k")
        }
        out.append(
            f"| {method} | {f'{budget:,}' if budget else 'no limit'} | {mean['tokens']:,.0f} | {mean['needed']:.0%} "
            f"| {mean['ground']:.0%} | {mean['typed']:.0%} | {mean['ms_per_100k']:.0f} |"
        )
    return out


def _growth(results: Results, where: str) -> list[str]:
    if not results.growth:
        return []
    out = [
        "",
        "## How costs grow",
        "",
        "k is the exponent of cost = a · size^k over the upper half of the sizes: 1 grows in proportion, 0 not at all. "
        "“At most” is what it should be: 1 where all of the input is read, 0 where the cost must not depend on it.",
        "",
        "| cost | over | at the least | at the most | k | at most |",
        "|---|---|---|---|---|---|",
    ]
    for line in results.growth:
        (x0, y0), (x1, y1) = line.points[0], line.points[-1]
        k = "–" if line.exponent is None else f"{line.exponent:.2f}"
        low, high = f"{number(y0)} {line.unit} at {x0:,.0f}", f"{number(y1)} {line.unit} at {x1:,.0f}"
        out.append(f"| {line.name} | {line.size} | {low} | {high} | {k} | {line.most:g} |")
    out.append("")
    for name, together in pictures(results.growth):
        out.append(f"![{together[0].unit} over {together[0].size}]({where}measured-{name}.svg)")
    return out

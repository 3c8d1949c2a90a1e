"""Lines on two logarithmic axes, as SVG that is readable on light and on dark.

Both axes begin and end at a power of ten (or 1, 2, 5 of it) around the data; nothing is cut off or bent. The grey slope
shows what growth in proportion would look like.
"""

import math
from collections.abc import Sequence
from html import escape

from bench.figures import number

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 36, 46, 52
COLOURS = ("#2f6fb5", "#c05621", "#2f855a", "#7b4fb5", "#b7791f")
_STYLE = (
    "text{font:12px -apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#1f2933}.ground{fill:#fff}"
    ".grid{stroke:#d5dbe1}.slope{stroke:#9aa5b1;stroke-dasharray:5 4}.title{font-size:14px;font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#e6ebf0}.ground{fill:#12171d}.grid{stroke:#333e4a}}"
)
Named = tuple[str, Sequence[tuple[float, float]]]


def plot(title: str, size: str, unit: str, lines: Sequence[Named]) -> str:
    """One picture. Points at or below zero have no place on a logarithmic axis, and are left out."""
    kept = [(name, [(x, y) for x, y in points if x > 0 and y > 0]) for name, points in lines]
    xs = [x for _, points in kept for x, _ in points]
    ys = [y for _, points in kept for _, y in points]
    across, up = _ticks(min(xs), max(xs)), _ticks(min(ys), max(ys))

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (WIDTH - LEFT - RIGHT) * _share(x, across),
            HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * _share(y, up),
        )

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 18 * len(kept)}" role="img" '
        f'aria-label="{escape(title)}"><style>{_STYLE}</style>',
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT + 18 * len(kept)}"/>',
        _text(WIDTH / 2, 24, title, "middle", "title"),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, size, "middle"),
        _text(LEFT - 8, TOP - 12, unit, "end"),
    ]
    for x in across:
        (px, py), (_, top) = at(x, up[0]), at(x, up[-1])
        out += [_path([(px, py), (px, top)], "grid"), _text(px, py + 18, number_of(x), "middle")]
    for y in up:
        (px, py), (right, _) = at(across[0], y), at(across[-1], y)
        out += [_path([(px, py), (right, py)], "grid"), _text(px - 8, py + 4, number_of(y), "end")]
    span = min(math.log(across[-1] / across[0]), math.log(up[-1] / up[0]))
    out.append(_path([at(across[0], up[0]), at(across[0] * math.exp(span), up[0] * math.exp(span))], "slope"))
    for index, (name, points) in enumerate(kept):
        colour = COLOURS[index % len(COLOURS)]
        places = [at(x, y) for x, y in points]
        out.append(_path(places, "", f'stroke="{colour}" stroke-width="2"'))
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        down = HEIGHT + 18 * index
        out += [_path([(LEFT, down), (LEFT + 24, down)], "", f'stroke="{colour}" stroke-width="3"')]
        out.append(_text(LEFT + 32, down + 4, name, "start"))
    return "\n".join([*out, "</svg>\n"])


def number_of(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else number(value).rstrip("0")


def _ticks(least: float, most: float) -> list[float]:
    """1, 2, 5, 10 … around the values; powers of ten alone where those are many."""
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    steps = (1,) if last - first > 2 else (1, 2, 5)
    every = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    start = max(tick for tick in every if tick <= least * (1 + 1e-9))
    end = next((tick for tick in every if tick >= most * (1 - 1e-9) and tick > start), start * 10)
    return [tick for tick in [*every, end] if start <= tick <= end and (tick != end or tick not in every)] + (
        [end] if end in every else []
    )


def _share(value: float, ticks: Sequence[float]) -> float:
    return math.log(value / ticks[0]) / math.log(ticks[-1] / ticks[0])


def _path(points: Sequence[tuple[float, float]], kind: str, more: str = "") -> str:
    if not points:
        return ""
    start, *rest = (f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="{kind}" {more} fill="none" d="M{start}{"".join(f" L{point}" for point in rest)}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'

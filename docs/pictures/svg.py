"""Pictures as SVG: boxes, arrows and texts, readable on light and on dark.

Rules: colours are classes, and the viewer's preference chooses them; the ground is painted, so that a page of the other
kind does no harm. A text that would not fit its place raises: what is drawn can be read.
"""

from html import escape

FONT = "font-family: -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
LIGHT = {
    "ground": "#ffffff",
    "text": "#1f2933",
    "quiet": "#52606d",
    "plain": "#f4f6f8",
    "plain-edge": "#9aa5b1",
    "ours": "#e3effc",
    "ours-edge": "#2f6fb5",
    "pure": "#e4f4ea",
    "pure-edge": "#2f855a",
    "warn": "#fdf0dc",
    "warn-edge": "#b7791f",
    "line": "#52606d",
}
DARK = {
    "ground": "#12171d",
    "text": "#e6ebf0",
    "quiet": "#a5b1bd",
    "plain": "#1e2630",
    "plain-edge": "#6b7886",
    "ours": "#142a44",
    "ours-edge": "#69a8ec",
    "pure": "#14301f",
    "pure-edge": "#5cc28a",
    "warn": "#38290f",
    "warn-edge": "#e0aa4a",
    "line": "#a5b1bd",
}
WIDE = 0.53
"""The width of a character in shares of the font's size, on average and a little more."""


def _rules(colours: dict[str, str]) -> str:
    rules = [f".ground{{fill:{colours['ground']}}}"]
    for kind in ("plain", "ours", "pure", "warn"):
        rules.append(f".{kind}{{fill:{colours[kind]};stroke:{colours[f'{kind}-edge']}}}")
    rules.append(f"text{{fill:{colours['text']}}}.quiet{{fill:{colours['quiet']}}}")
    rules.append(f".line{{stroke:{colours['line']};fill:none}}.tip{{fill:{colours['line']}}}")
    rules.append(f".free{{paint-order:stroke;stroke:{colours['ground']};stroke-width:4px}}")
    return "".join(rules)


class Picture:
    """``about`` is read by those who do not see the picture."""

    def __init__(self, width: int, height: int, title: str, about: str) -> None:
        self.size = (width, height)
        self.title, self.about = title, about
        self._parts: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        title: str = "",
        lines: str = "",
        kind: str = "plain",
        *,
        top: bool = False,
    ) -> None:
        """A box with a title and lines below it, in its middle or, for what has other boxes in it, at its top."""
        self._parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{w}" height="{h}" rx="7" stroke-width="1.4"/>')
        told = [line for line in lines.split("\n") if lines]
        high = 18 * bool(title) + 16 * len(told)
        if high > h - 6:
            raise ValueError(f"{title or lines!r} is higher than its box")
        below = y + 6 if top else y + (h - high) / 2
        if title:
            below += 18
            self.text(x + w / 2, below - 4, title, size=14, bold=True, middle=True, room=w - 10)
        for line in told:
            below += 16
            self.text(x + w / 2, below - 4, line, size=12, quiet=True, middle=True, room=w - 10)

    def text(
        self,
        x: float,
        y: float,
        said: str,
        *,
        size: int = 12,
        bold: bool = False,
        quiet: bool = False,
        middle: bool = False,
        end: bool = False,
        room: float | None = None,
        free: bool = False,
    ) -> None:
        """``free``: not in a box; it keeps lines off."""
        width = len(said) * size * (WIDE + 0.03 * bold)
        if room is not None and width > room:
            raise ValueError(f"{said!r} needs {width:.0f} and has {room:.0f}")
        left = x - width / 2 if middle else x - width if end else x
        if left < 0 or left + width > self.size[0] + 4 or not 0 < y <= self.size[1]:
            raise ValueError(f"{said!r} is outside of the picture")
        anchor = ' text-anchor="middle"' if middle else ' text-anchor="end"' if end else ""
        weight = ' font-weight="600"' if bold else ""
        kinds = " ".join(["quiet"] * quiet + ["free"] * free)
        kind = f' class="{kinds}"' if kinds else ""
        self._parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}"{anchor}{weight}{kind}>{escape(said)}</text>')

    def arrow(
        self, x1: float, y1: float, x2: float, y2: float, said: str = "", *, both: bool = False, dashed: bool = False
    ) -> None:
        """A straight arrow; what is said stands above its middle, or right of it where it goes up or down."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        start = ' marker-start="url(#back)"' if both else ""
        self._parts.append(
            f'<line class="line" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke-width="1.5"'
            f' marker-end="url(#tip)"{start}{dash}/>'
        )
        if not said:
            return
        if y1 == y2:
            self.text((x1 + x2) / 2, y1 - 6, said, size=11, middle=True, room=abs(x2 - x1) + 6, free=True)
        else:
            self.text((x1 + x2) / 2 + 8, (y1 + y2) / 2 + 4, said, size=11, free=True)

    def line(self, x1: float, y1: float, x2: float, y2: float, *, dashed: bool = False, width: float = 1.2) -> None:
        dash = ' stroke-dasharray="3 4"' if dashed else ""
        self._parts.append(f'<line class="line" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke-width="{width}"{dash}/>')

    def svg(self) -> str:
        w, h = self.size
        tip = '<path class="tip" d="M0 0 L9 4.5 L0 9 z"/>'
        back = '<path class="tip" d="M9 0 L0 4.5 L9 9 z"/>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img">\n'
            f"<title>{escape(self.title)}</title>\n<desc>{escape(self.about)}</desc>\n"
            f"<style>text{{{FONT}}}{_rules(LIGHT)}\n@media (prefers-color-scheme: dark){{{_rules(DARK)}}}</style>\n"
            '<defs><marker id="tip" markerWidth="9" markerHeight="9" refX="8" refY="4.5" orient="auto"'
            f' markerUnits="userSpaceOnUse">{tip}</marker><marker id="back" markerWidth="9" markerHeight="9" refX="1"'
            f' refY="4.5" orient="auto" markerUnits="userSpaceOnUse">{back}</marker></defs>\n'
            f'<rect class="ground" width="{w}" height="{h}" rx="10"/>\n' + "\n".join(self._parts) + "\n</svg>\n"
        )

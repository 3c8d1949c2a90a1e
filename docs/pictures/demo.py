"""Draws the picture of the demo in README, from a real run:

    python docs/pictures/demo.py           run the demo and write the picture
    python docs/pictures/demo.py --check   fail where the run does not say what the picture shows

Rules: every line of the picture is a line of the run, in its order. Ports and milliseconds differ from run to run; a
picture that differs in nothing else is left as it is. The picture is a terminal, dark on whatever page it stands.
"""

import re
import subprocess
import sys
from html import escape, unescape
from pathlib import Path

HERE = Path(__file__).parent
PICTURE = HERE / "demo.svg"
GUARD_S = 150
SHOWN = (
    r"1\. A page with two frames",
    r"> browser_snapshot\(\)",
    r"  - f2 ",
    r"  - f3 ",
    r"  e1 button",
    r'   "Last entry',
    r'   "Wind: ',
    r"  \[ok\] the frame of another site has a process",
    r"  \[ok\] JavaScript ran in the frame of another site",
    "",
    r"3\. A dialog that opens while",
    r"> browser_cdp\(",
    r"  A dialog is open:",
    r"  - d-\d+: confirm",
    r"      browser_dialog\(",
    r"  \[ok\] it ended, after",
    r"> browser_dialog\(",
    r"  d-\d+, confirm",
    "",
    r"5\. A long conversation",
    r"> compress_context\(",
    r"  Tokens ",
    r"  Kept ",
    r"  \[ok\] it is valid for",
    r"  \[ok\] every word that the person typed",
    "",
    r"\d+ claims held, 0 did not",
)
"""A beginning of each line that is shown; an empty one is a gap."""
WIDTH, LINE, LEFT, TOP = 780, 18, 20, 58
COLOURS = (
    (r"\s*\[ok\]", "#6fd08c"),
    (r"> ", "#7ab8ff"),
    (r"\$ |\d+\. |\d+ claims", "#ffffff"),
    (r"  A dialog|  - d-|      browser_dialog", "#f0c26b"),
)


def chosen(output: str) -> list[str]:
    """The lines of the picture. Raises SystemExit where the run has none for one that should be shown."""
    lines, at = output.splitlines(), 0
    found = ["$ watchkeeper demo", ""]
    for pattern in SHOWN:
        if not pattern:
            found.append("")
            continue
        while at < len(lines) and not re.match(pattern, lines[at]):
            at += 1
        if at == len(lines):
            raise SystemExit(f"the demo does not say {pattern!r} any more; choose other lines in {Path(__file__).name}")
        found.append(re.sub(r"(127\.0\.0\.1|localhost):\d+", r"\1:8000", lines[at]))
        at += 1
    return found


def lasting(lines: list[str]) -> list[str]:
    """Without what differs from run to run."""
    return [re.sub(r"\d+ ms", "… ms", line) for line in lines]


def drawn(lines: list[str]) -> str:
    height = TOP + LINE * len(lines) + 8
    dots = "".join(f'<circle cx="{20 + 18 * n}" cy="18" r="5.5" fill="#4a5562"/>' for n in range(3))
    texts = []
    for number, line in enumerate(lines):
        colour = next((colour for pattern, colour in COLOURS if re.match(pattern, line)), "#c9d1d9")
        texts.append(
            f'<text x="{LEFT}" y="{TOP + LINE * number}" fill="{colour}" xml:space="preserve">{escape(line)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' role="img">\n<title>A run of watchkeeper demo</title>\n'
        "<style>text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}</style>\n"
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#161b22" stroke="#4a5562"/>\n{dots}\n'
        + "\n".join(texts)
        + "\n</svg>\n"
    )


def pictured() -> list[str]:
    """The lines of the picture that there is."""
    text = PICTURE.read_text("utf-8") if PICTURE.exists() else ""
    return [unescape(line) for line in re.findall(r"<text [^>]*>(.*?)</text>", text)]


def run() -> str:
    command = [sys.executable, "-m", "watchkeeper.server", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S)
    if done.returncode:
        raise SystemExit(f"the demo failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main(arguments: list[str]) -> int:
    lines = chosen(run())
    if lasting(lines) == lasting(pictured()):
        return 0
    if "--check" in arguments:
        sys.stdout.write("the demo says something else than docs/pictures/demo.svg; run docs/pictures/demo.py\n")
        return 1
    PICTURE.write_text(drawn(lines), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What tests of the documents need of Markdown: fenced blocks with their marks, code in the text, links, anchors.

Rules: a mark is an HTML comment on a line of its own right before a block:

    <!-- not run: REASON -->     the block is not run or checked; the number of these is held by a test
    <!-- file: NAME -->          the block is a file of this name, for the commands of its page
    <!-- prints -->              the block is what the block before it prints; "…" stands for anything
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"<!-- (not run|file|prints)(?:: (.+?))? -->")
FENCE = re.compile(r"( *)```(\S*)\n(.*?)\n? *```(?:\n|$)", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """``line``: of the fence, from 1. ``before``: the block that stands before it in the page."""

    page: "Page"
    line: int
    language: str
    text: str
    mark: str = ""
    said: str = ""

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def runs(self) -> bool:
        return self.mark != "not run"


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def prose(self) -> str:
        """The text without its fenced blocks and comments."""
        return re.sub(r"<!--.*?-->", "", FENCE.sub("\n", self.text), flags=re.DOTALL)

    def blocks(self) -> tuple[Block, ...]:
        return tuple(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        text = self.text
        for found in re.finditer(rf"(?m)^{FENCE.pattern}", text, re.DOTALL):
            above = text[: found.start()].rstrip().rpartition("\n")[2].strip()
            mark = MARK.fullmatch(above)
            body = "\n".join(line.removeprefix(found[1]) for line in found[3].split("\n"))
            line = text.count("\n", 0, found.start()) + 1
            yield Block(self, line, found[2], body, mark[1] if mark else "", (mark[2] or "") if mark else "")

    def code(self) -> tuple[str, ...]:
        """What stands in single backticks."""
        return tuple(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", self.prose))

    def links(self) -> tuple[str, ...]:
        prose = re.sub(r"(?<!`)`[^`\n]+`(?!`)", "", self.prose)
        sources = re.findall(r'(?:src|srcset|href)="([^"]+)"', prose)
        return (*re.findall(r"\]\(([^)\s]+)\)", prose), *sources)

    def anchors(self) -> frozenset[str]:
        """As GitHub makes them of headings."""
        headings = re.findall(r"(?m)^#{1,6} +(.+?)\s*$", FENCE.sub("\n", self.text))
        return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


def pages() -> tuple[Page, ...]:
    """README and everything below docs."""
    return tuple(Page(path) for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))))


def commands(block: Block) -> Iterator[str]:
    """The commands of a shell block: lines joined where they go on, without prompts and blank lines."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield from (part.strip() for part in line.split(" && "))


def printed(expected: str, output: str) -> list[str]:
    """The lines of ``expected`` that stand nowhere in ``output``, in this order; "…" stands for anything."""
    missing = []
    rest = output
    for line in filter(str.strip, expected.splitlines()):
        pattern = ".*".join(re.escape(part) for part in re.split("…", line.strip()))
        found = re.search(pattern, rest)
        if found is None:
            missing.append(line)
        else:
            rest = rest[found.end() :]
    return missing

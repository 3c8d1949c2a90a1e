"""Anchors: strings that can only be written correctly by someone who has seen them.

Rules this module keeps:

- An anchor is copied from its source character for character; nothing is normalised.
- What is recognised are shapes that hold in every trade (addresses, paths, versions, ids, amounts, dates, quoted
  words), never the vocabulary of one tool, vendor or language.
- Text is cut once into *chunks* (runs without blanks, brackets or quotes). `classify` looks at one chunk alone, so a
  caller that keeps its answers pays for each distinct chunk once, however often it is repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

Kind = Literal[
    "url",
    "email",
    "path",
    "file",
    "host",
    "uuid",
    "sha",
    "ref",
    "version",
    "date",
    "money",
    "number",
    "id",
    "symbol",
    "quote",
]
Anchor = tuple[str, Kind]

MAX_CHUNK = 400
"""A longer run without a blank is data (base64, minified code), not a name: it is not looked at."""

_EXTENSIONS = (
    "adoc astro avi avif bash bat bib bin bz2 c cc cfg cjs clj cmake cmd conf cpp cs csproj css csv cts cxx dart "
    "db deb diff dll doc docx dylib ear eml env eps epub erl ex exe exs fish flac fs gif go gotmpl gql gradle "
    "graphql gz h hbs hcl hpp hs htm html icns ico ics ini ipynb iso j2 jar java jpeg jpg js json json5 jsonc "
    "jsonl jsx key kt kts less lock log lua m4a map md mdx mjs mk ml mod mov mp3 mp4 mpp mts nim nix odp ods odt "
    "ogg onnx org out parquet patch pb pdf pem php pkl plist png po pot ppt pptx proto ps1 psd py pyc pyi pyx qml "
    "r rar rb rego rpm rs rst rtf sass scala scss service sh sln so sol sql sqlite srt sum svelte svg swift tar "
    "tex tf tfvars tgz tif tiff tmpl toml traj ts tsv tsx ttf txt vb vue war wasm wav webm webp whl woff woff2 "
    "xls xlsb xlsm xlsx xml xz yaml yml zig zip zsh zst"
)
_EXT = "|".join(sorted(_EXTENSIONS.split(), key=len, reverse=True))
_CURRENCY = "$€£¥₽₹₩₴元円"

CHUNK = re.compile(
    rf"[{_CURRENCY}]?\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?[{_CURRENCY}%]?(?!\w)"
    r"|[^\s\"'`<>()\[\]{}|,;«»“”„‘’「」『』《》〈〉【】、。，；：！？（）…]+"
)
_QUOTED = re.compile(
    r"`([^`\n]{6,120})`|\"([^\"\n]{6,120})\"|«([^«»\n]{4,120})»|“([^“”\n]{4,120})”|„([^„“”\n]{4,120})“"
    r"|「([^「」\n]{2,60})」|『([^『』\n]{2,60})』|《([^《》\n]{2,60})》"
)
_QUOTE_MARKS = frozenset('`"«“„「『《')

_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\\]+", re.I)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PATH = re.compile(r"(?:[A-Za-z]:|~)?(?:\.{1,2}/|/)?(?:[\w.@+%~-]+/)+[\w.@+%~-]*\w|(?:~|[A-Za-z]:)?/[\w.@+-]{4,}")
_WINDOWS_PATH = re.compile(r"(?:[A-Za-z]:|\\|\.{1,2})?(?:\\{1,2}[\w.@+~$-]+){2,}")
# Each pattern, and what a chunk must have for it to match anywhere. Of two that match at one place the first counts.
_DIGIT, _LETTER, _DOT, _DASH, _PARTED, _MARKED, _MONEY = (1 << n for n in range(7))
_PIECES: tuple[tuple[int, str], ...] = (
    (_DASH, r"(?P<uuid>\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b)"),
    (
        _DIGIT | _PARTED,
        r"(?P<date>\b\d{4}[-/.]\d{2}[-/.]\d{2}(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?(?!\w)"
        r"|\b\d{1,2}[./]\d{1,2}[./]\d{4}\b)",
    ),
    (_DIGIT | _MONEY, rf"(?P<money>[{_CURRENCY}]\d[\d,]*(?:\.\d+)?[kKmM]?|(?<![\w.])\d[\d,]*(?:\.\d+)?[{_CURRENCY}])"),
    (_DIGIT | _DOT, r"(?P<version>(?<![\w.])v?\d+\.\d+\.\d+(?:[-+.][\w.+-]*\w)?)"),
    (_LETTER | _DOT, rf"(?P<file>(?<![\w.-])[\w.-]*\w\.(?:{_EXT})(?![\w/-]))"),
    (
        _LETTER | _DOT,
        r"(?P<host>(?<![\w.-])(?:[a-z0-9-]+\.)+"
        r"(?:com|org|net|io|dev|app|ai|co|edu|gov|info|ru|cn|jp|de|uk|fr|eu|рф)(?![\w-])(?::\d+)?)",
    ),
    (
        _DIGIT | _MARKED,
        r"(?P<ref>(?<![\w#])[#№!]\d{1,7}\b|(?<![\w-])[A-ZА-ЯЁ]{2,10}-(?:[A-Z0-9]{1,6}-)*\d{1,10}(?![\w-]))",
    ),
    (_DIGIT | _LETTER, r"(?P<sha>(?<![\w-])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}(?![\w-]))"),
    (
        _LETTER,
        r"(?P<symbol>(?<![^\W_-])(?:_{0,2}[A-Za-z][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+|[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+"
        r"|(?:[A-Z][a-z0-9]+){2,}[A-Z]*|[A-Z]{2,}[a-z][A-Za-z0-9]*[A-Z]?[A-Za-z0-9]*)(?![^\W_]))",
    ),
    (
        _DIGIT | _LETTER,
        r"(?P<id>(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*(?![\w-]))",
    ),
    (
        _DIGIT,
        r"(?P<number>(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?%?|(?<![\w.])\d+\.\d+%?(?![\w.])|(?<![\w.])\d{3,}%?(?!\w)"
        r"|(?<![\w.])\d+%)",
    ),
)
_ANY_DIGIT = re.compile(r"\d")
_ANY_MONEY = re.compile(f"[{_CURRENCY}]")
_ANY_LETTER = re.compile(r"[A-Za-zр]")  # Latin, and what the one name of a domain in another script begins with
_NOT_PLAIN = re.compile(r"[\d_/\\@:#$€£¥₽]|\w\.\w|[a-z][A-Z]|[A-Z]{2}")
_ROUND = re.compile(r"[1-9]0+|\d+\.0+|(?:19|20)\d\d")
_TRAIL = ".,;:!?*_-=&\\…"
_SEPARATORS = re.compile(r"[=:&?#]|\\+[nrt]?")


def classify(chunk: str) -> tuple[Anchor, ...]:
    """The anchors inside one chunk, longest reading first (an address is not also reported as a path)."""
    if len(chunk) > MAX_CHUNK or _NOT_PLAIN.search(chunk) is None:
        return ()
    if "://" in chunk:
        found = _URL.search(chunk)
        if found is not None and len(url := found[0].rstrip(_TRAIL + "/")) > 11:
            return ((url, "url"),)
    if "@" in chunk and (found := _EMAIL.search(chunk)) is not None:
        return ((found[0], "email"),)
    if "\\" in chunk and (found := _WINDOWS_PATH.search(chunk)) is not None and ("\\\\" in chunk or ":" in chunk[:3]):
        return ((found[0].rstrip(_TRAIL), "path"),)
    out: list[Anchor] = []
    if "/" in chunk:
        rest: list[str] = []
        at = 0
        for match in _PATH.finditer(chunk):
            path = match[0].rstrip(_TRAIL)
            if _is_path(path):
                out.append((path, "path"))
                rest.append(chunk[at : match.start()])
                at = match.end()
        rest.append(chunk[at:])
        chunk = " ".join(rest)
    for match in _pieces_of(chunk):
        kind: Kind = match.lastgroup  # type: ignore[assignment]
        text = match[0]
        if kind == "symbol" and len(text) < 5:
            continue
        if kind == "id" and (len(text) < 5 or sum(map(str.isdigit, text)) < 2):
            continue
        if kind == "number" and _ROUND.fullmatch(text):
            continue
        out.append((text, kind))
    return tuple(out)


def _pieces_of(chunk: str) -> Iterator[re.Match[str]]:
    """Matches of the patterns that can match the chunk at all: each that is left out is not tried at every place."""
    has = 0
    if _ANY_DIGIT.search(chunk):
        has |= _DIGIT
    if _ANY_LETTER.search(chunk):
        has |= _LETTER
    if "." in chunk:
        has |= _DOT | _PARTED
    if "-" in chunk:
        has |= _DASH | _PARTED | _MARKED
    if "/" in chunk:
        has |= _PARTED
    if "#" in chunk or "№" in chunk or "!" in chunk:
        has |= _MARKED
    if _ANY_MONEY.search(chunk):
        has |= _MONEY
    return _piece(has).finditer(chunk)


@cache
def _piece(has: int) -> re.Pattern[str]:
    possible = [pattern for needs, pattern in _PIECES if needs & has == needs]
    return re.compile("|".join(possible) or "(?!)")


def _is_path(path: str) -> bool:
    parts = [part for part in path.split("/") if part not in ("", ".", "..", "~")]
    if not parts or len(path) < 5 or all(part.isdigit() for part in parts):
        return False
    if path[0] in "/~." or len(parts) >= 3:
        return True
    return "." in parts[-1][1:] or any(c in "-_" or c.isdigit() for c in path)


def quoted(line: str) -> list[str]:
    """Phrases of at least two words (or any, in the brackets of CJK) that the line puts in quotation marks."""
    if _QUOTE_MARKS.isdisjoint(line):
        return []
    out = []
    for groups in _QUOTED.findall(line):
        text = "".join(groups).strip()
        if len(text) >= 2 and (" " in text or not text.isascii()):
            out.append(text)
    return out


def extract(text: str) -> dict[str, Kind]:
    """Every anchor of a text with its kind, in order of first appearance."""
    out: dict[str, Kind] = {}
    for chunk in CHUNK.findall(text):
        for anchor, kind in classify(chunk):
            out.setdefault(anchor, kind)
    for line in text.split("\n"):
        for phrase in quoted(line):
            out.setdefault(phrase, "quote")
    return out

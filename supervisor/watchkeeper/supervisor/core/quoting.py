"""Words of pages within our own.

Rules: they stand in double quotes on one line, and hold nothing that could end the quotes, steer a terminal, turn the
direction of text, or say something that nobody sees. So page text passes for no ref, role, marker or sentence of ours.
"""

import re

_UNSAFE = re.compile(
    '["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff'
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\u00ad\u115f\u1160\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def quoted(text: str) -> str:
    """``text`` in double quotes; what only steers or shows nothing is left out."""
    if _UNSAFE.search(text) is None:
        return f'"{text}"'
    return f'"{_UNSAFE.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found.group(), "")

"""The one redaction filter: secrets out of what leaves the machine and out of logs.

Rules:
- Pure: text in, text out. A secret becomes `[redacted:<kind>]`; what stood around it stays, so the text still reads.
- Idempotent: redacting twice is redacting once.
- Fast: a rule's expression is tried only where one of its literal needles stands, and each is linear from there.
- Two families. Token forms are recognised by their own shape wherever they stand. Values are recognised by the name in
  front of them (`password=`, `"api_key":`, `Cookie:`, `?sig=`); references to a secret (`$TOKEN`, `os.environ[...]`,
  `get_token()`, type names) are not secrets and stay.
- What it cannot know: a secret with neither a shape nor a name. It lowers the risk; it does not end it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .redaction_rules import REFERENCE, SECRET_NAMES, TOKEN_FORMS, VALUE_FORMS

_PASSES = 8  # one secret may uncover the next; text without any costs one pass


@dataclass(frozen=True)
class _Rule:
    """`pattern` is tried where a needle stands; it begins with the needle."""

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    replace: Callable[[re.Match[str]], str]
    folded: bool  # needles are lower case and looked for in the folded text


def redact(text: str) -> str:
    """`text` with what looks like a secret replaced by `[redacted:<kind>]`."""
    for _ in range(_PASSES):
        changed = _once(text)
        if changed == text:
            break
        text = changed
    return text


def redact_value(value: Any) -> Any:
    """A copy of a JSON value with every string in it redacted; one under a telling key is replaced whole."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {k: _under(k, v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [redact_value(v) for v in value]
    return value


def _once(text: str) -> str:
    folded = _fold(text)
    for rule in _RULES:
        changed = _apply(rule, text, folded if rule.folded else text)
        if changed is not text:
            text, folded = changed, _fold(changed)
    return text


def _fold(text: str) -> str:
    folded = text.lower()
    if len(folded) != len(text):  # a letter whose lower case is longer would shift every place after it
        folded = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    return folded


def _apply(rule: _Rule, text: str, where: str) -> str:
    places: list[int] = []
    for needle in rule.needles:
        at = where.find(needle)
        while at >= 0:
            places.append(at)
            at = where.find(needle, at + 1)
    if not places:
        return text
    pieces: list[str] = []
    done = 0
    for at in sorted(places):
        if at < done or (match := rule.pattern.match(text, at)) is None:
            continue
        replaced = rule.replace(match)
        if replaced != match[0]:
            pieces += text[done:at], replaced
            done = match.end()
    return "".join([*pieces, text[done:]]) if pieces else text


# --- values after a name ----------------------------------------------------------------------------


def _named(match: re.Match[str]) -> str:
    value, quote = match["value"], match["quote"] or ""
    if REFERENCE.match(value):
        return match[0]
    is_password = match["name"].lower().startswith(("pass", "pwd"))
    if is_password:
        secret = _is_password(value, quoted=bool(quote))
    else:
        secret = _is_opaque(value)
    if not secret:
        return match[0]
    kind = "password" if is_password else "value"
    return f"{match['name']}{match['between']}{quote}[redacted:{kind}]{quote}"


def _is_password(value: str, *, quoted: bool) -> bool:
    """A quoted value is one unless it is a path; a bare word needs what words of prose and code do not have."""
    if value.startswith(("/", "~", "./")) or re.match(r"[A-Za-z]:[\\/]", value):
        return False
    return quoted or re.search(r"[\d!@#%^*+]", value) is not None


def _is_opaque(value: str) -> bool:
    """Whether a value is more likely a secret than a name, a sentence or a count."""
    if len(value) < 8 or any(c.isspace() for c in value) or value.endswith((")", "]", "}", ":")):
        return False
    digits = sum(c.isdigit() for c in value)
    letters = sum(c.isalpha() for c in value)
    if digits and letters:
        return "/" not in value or value.count("/") * 12 < len(value)
    return letters >= 24 and value.isalnum() and not value.islower() and not value.isupper()


def _cookies(match: re.Match[str]) -> str:
    """Names of cookies stay, values go; attributes of Set-Cookie have nothing to hide."""
    return match["name"] + _COOKIE.sub(r"\g<name>[redacted:cookie]", match["value"])


_COOKIE = re.compile(
    r"(?P<name>(?:^|;)\s*(?!(?:path|domain|expires|max-age|samesite|priority)\s*=)[^=;\s]{1,200}=)(?!\[redacted)[^;\s]+",
    re.IGNORECASE,
)

_HANDLERS: Mapping[str, Callable[[re.Match[str]], str]] = {"named": _named, "cookies": _cookies}


def _token_rule(kind: str, needles: tuple[str, ...], pattern: str) -> _Rule:
    replacement = f"[redacted:{kind}]"
    # A longer word around it is not a token.
    return _Rule(needles, re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})"), lambda match: replacement, folded=False)


def _value_rule(kind: str, needles: tuple[str, ...], pattern: str) -> _Rule:
    compiled = re.compile(pattern, re.IGNORECASE)
    replace = _HANDLERS.get(kind) or (lambda match: f"{match['keep']}[redacted:{kind}]")
    return _Rule(needles, compiled, replace, folded=True)


_RULES = tuple(
    [_token_rule(kind, needles, pattern) for kind, needles, pattern in TOKEN_FORMS]
    + [_value_rule(kind, needles, pattern) for kind, needles, pattern in VALUE_FORMS]
)


def _under(key: Any, value: Any) -> Any:
    if isinstance(key, str) and isinstance(value, str) and SECRET_NAMES.search(key):
        return value if not value or REFERENCE.match(value) else "[redacted:value]"
    return redact_value(value)

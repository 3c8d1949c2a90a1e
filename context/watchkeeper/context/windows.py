"""Context lengths of models by name, for hosts that do not say. A guess errs on the small side.

Sources, read 2026: https://platform.openai.com/docs/models, https://platform.claude.com/docs/en/about-claude/models,
https://ai.google.dev/gemini-api/docs/models. A host that knows better passes `context_length`.
"""

from __future__ import annotations

import re
from typing import Final

DEFAULT_CONTEXT_LENGTH: Final = 200_000

_WINDOWS: Final[tuple[tuple[re.Pattern[str], int], ...]] = tuple(
    (re.compile(pattern), length)
    for pattern, length in (
        (r"claude", 200_000),
        (r"gpt-4\.1", 1_000_000),
        (r"gpt-[5-9]", 400_000),
        (r"gpt-4o|gpt-4-turbo|gpt-oss|chatgpt-4o", 128_000),
        (r"gpt-4-32k", 32_768),
        (r"gpt-4", 8_192),
        (r"gpt-3\.5", 16_385),
        (r"o[1-9]\b", 200_000),
        (r"gemini", 1_000_000),
        (r"grok-[3-9]|qwen3|deepseek|llama-[34]|mistral|kimi|glm", 128_000),
    )
)


def context_length_for(model: str) -> int:
    """The window of a model in tokens; 200,000 for one that is not known."""
    name = model.lower().rsplit("/", 1)[-1]
    for pattern, length in _WINDOWS:
        if pattern.match(name) or (name.startswith(("us.", "eu.", "anthropic.")) and pattern.search(name)):
            return length
    return DEFAULT_CONTEXT_LENGTH


__all__ = ["DEFAULT_CONTEXT_LENGTH", "context_length_for"]

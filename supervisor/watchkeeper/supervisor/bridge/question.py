"""What a bridged function asks.

Rules: page data, untrusted: only the known types, only texts.
"""

from dataclasses import dataclass
from typing import Any

TYPES = ("alert", "confirm", "prompt", "beforeunload")


@dataclass(frozen=True, slots=True)
class Question:
    type: str
    message: str
    default_prompt: str
    url: str

    def as_params(self) -> dict[str, str]:
        """In the words of ``Page.javascriptDialogOpening``."""
        return {
            "type": self.type,
            "message": self.message,
            "defaultPrompt": self.default_prompt,
            "url": self.url,
        }


def question(type: Any, message: Any, default_prompt: Any, url: Any) -> Question | None:
    """A question from what came over the bridge; None for anything else."""
    if type not in TYPES or not all(isinstance(part, str) for part in (message, default_prompt, url)):
        return None
    return Question(type, message, default_prompt, url)

"""Building a sample conversation: who says what, and what of it will be needed again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from watchkeeper.context.core.messages import Message


@dataclass(slots=True)
class Sample:
    """Messages, and `needed`: strings of the early part that the work after its end depends on."""

    messages: list[Message] = field(default_factory=list)
    needed: list[str] = field(default_factory=list)

    def system(self, text: str) -> None:
        self.messages.append({"role": "system", "content": text})

    def user(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def agent(self, text: str) -> None:
        self.messages.append({"role": "assistant", "content": text})

    def calls(self, said: str | None, *calls: tuple[str, dict[str, Any], str]) -> None:
        """Tool calls of one message as (tool, arguments, result); after something said, of that message."""
        before = self.messages[-1]
        if before["role"] == "assistant" and "tool_calls" not in before:
            said = f"{before['content']}\n\n{said}" if said else before["content"]
            self.messages.pop()
        first = sum(m["role"] == "tool" for m in self.messages)
        numbered = [(f"call_{first + n:03d}", *call) for n, call in enumerate(calls)]
        self.messages.append(
            {
                "role": "assistant",
                "content": said,
                "tool_calls": [
                    {
                        "id": call_id,
                        "type": "function",
                        "function": {"name": tool, "arguments": json.dumps(arguments, ensure_ascii=False)},
                    }
                    for call_id, tool, arguments, _ in numbered
                ],
            }
        )
        for call_id, _, _, result in numbered:
            self.messages.append({"role": "tool", "tool_call_id": call_id, "content": result})

    def need(self, *facts: str) -> None:
        """Facts that will be needed again; each must have been said."""
        self.needed += facts


__all__ = ["Sample"]

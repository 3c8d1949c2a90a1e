"""Summaries by a Claude model: the optional extra `anthropic`.

The SDK is imported at the first summary, not before. Source: https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

from typing import Any

from watchkeeper.context.errors import SummarizerFailed
from watchkeeper.context.summarizers.calling import Answer, Prompt, read_json
from watchkeeper.context.summarizers.hosted import HostedSummarizer


class AnthropicSummarizer(HostedSummarizer):
    """A summariser of the Anthropic kind."""

    provider = "Anthropic"
    extra = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"
    sdk_error = "AnthropicError"
    default_window = 200_000

    async def _ask(self, sdk: Any, key: str, prompt: Prompt) -> Answer:
        async with (
            sdk.AsyncAnthropic(
                api_key=key, base_url=self._base_url, max_retries=0, timeout=self._limits.attempt
            ) as client,
            client.messages.with_streaming_response.create(
                model=self.model,
                max_tokens=prompt.max_tokens,
                system=prompt.system,
                messages=[{"role": "user", "content": prompt.user}],
            ) as response,
        ):
            return _answer(await read_json(response.iter_bytes()))


def _answer(body: dict[str, Any]) -> Answer:
    try:
        text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
        usage = body.get("usage") or {}
        sizes = int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise SummarizerFailed("malformed", "the server's answer is no message") from error
    return Answer(text, str(body.get("stop_reason") or ""), str(body.get("model") or ""), *sizes)

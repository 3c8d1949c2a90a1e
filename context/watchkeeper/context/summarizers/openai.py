"""Summaries by a model behind an OpenAI-compatible endpoint: the optional extra `openai`.

The SDK is imported at the first summary, not before. Source: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

from typing import Any

from watchkeeper.context.errors import SummarizerFailed
from watchkeeper.context.summarizers.calling import Answer, Prompt, read_json
from watchkeeper.context.summarizers.hosted import HostedSummarizer


class OpenAISummarizer(HostedSummarizer):
    """A summariser of the OpenAI kind. An endpoint of one's own (`base_url`) may need no key."""

    provider = "OpenAI"
    extra = "openai"
    key_variable = "OPENAI_API_KEY"
    sdk_error = "OpenAIError"

    def _key(self) -> str | None:
        return super()._key() or ("none" if self._base_url else None)

    async def _ask(self, sdk: Any, key: str, prompt: Prompt) -> Answer:
        # The newer name is OpenAI's own; compatible servers know the older one.
        limit: dict[str, Any] = {"max_tokens" if self._base_url else "max_completion_tokens": prompt.max_tokens}
        async with (
            sdk.AsyncOpenAI(
                api_key=key, base_url=self._base_url, max_retries=0, timeout=self._limits.attempt
            ) as client,
            client.chat.completions.with_streaming_response.create(
                model=self.model,
                messages=[{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
                **limit,
            ) as response,
        ):
            return _answer(await read_json(response.iter_bytes()))


def _answer(body: dict[str, Any]) -> Answer:
    try:
        choice = body["choices"][0]
        message = choice["message"]
        usage = body.get("usage") or {}
        text, stop = message.get("content") or "", str(choice.get("finish_reason") or "")
        if message.get("refusal"):
            stop = "refusal"
        sizes = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise SummarizerFailed("malformed", "the server's answer is no chat completion") from error
    if not isinstance(text, str):
        raise SummarizerFailed("malformed", "the answer's content is not text")
    return Answer(text, stop, str(body.get("model") or ""), *sizes)

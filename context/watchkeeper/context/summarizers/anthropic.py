"""Summaries by a Claude model: the optional extra `anthropic`.

The SDK is imported at the first summary, not before. Source: https://platform.claude.com/docs/en/api/messages
"""

from __future__ import annotations

from typing import Any

from watchkeeper.context.errors import SummarizerFailed
from watchkeeper.context.summarizers.calling import (
    Answer,
    Limits,
    Passing,
    Prompt,
    api_failure,
    call,
    check_window,
    is_transport_failure,
    key_from,
    read_json,
)
from watchkeeper.context.summarizers.port import Summary, SummaryRequest

_KEY = "ANTHROPIC_API_KEY"


class AnthropicSummarizer:
    """A summariser of the Anthropic kind.

    Args:
        model: the provider's name for it.
        api_key: else `ANTHROPIC_API_KEY`.
        base_url: another endpoint that speaks the Messages API.
        window: the model's context length in tokens.
        limits: time limits.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        window: int = 200_000,
        limits: Limits | None = None,
    ) -> None:
        self.model = model
        self._api_key = api_key
        self._base_url = base_url
        self._window = window
        self._limits = limits or Limits()

    @property
    def name(self) -> str:
        """Shown in reports."""
        return f"anthropic:{self.model}"

    @property
    def window(self) -> int:
        """Tokens."""
        return self._window

    def summarize(self, request: SummaryRequest) -> Summary:
        """See `Summarizer.summarize`."""
        check_window(request, self._window)
        return call(request, self._ask, self._limits, who=self.name)

    async def _ask(self, prompt: Prompt) -> Answer:
        try:
            import anthropic
        except ImportError as error:
            raise SummarizerFailed(
                "unavailable", "the Anthropic SDK is not installed", "pip install 'watchkeeper[anthropic]'"
            ) from error
        key = key_from(self._api_key, _KEY)
        if key is None:
            raise SummarizerFailed("authentication", "there is no key for Anthropic", f"set {_KEY}")
        try:
            async with (
                anthropic.AsyncAnthropic(
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
        except anthropic.AnthropicError as error:
            raise api_failure(error, key=_KEY) from error
        except (SummarizerFailed, Passing, TimeoutError):
            raise
        except Exception as error:
            if is_transport_failure(error):
                raise Passing(SummarizerFailed("network", f"the answer broke off ({type(error).__name__})")) from error
            raise


def _answer(body: dict[str, Any]) -> Answer:
    try:
        text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
        usage = body.get("usage") or {}
        sizes = int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise SummarizerFailed("malformed", "the server's answer is no message") from error
    return Answer(text, str(body.get("stop_reason") or ""), str(body.get("model") or ""), *sizes)

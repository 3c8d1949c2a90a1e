"""Summaries by a model behind an OpenAI-compatible endpoint: the optional extra `openai`.

The SDK is imported at the first summary, not before. Source: https://platform.openai.com/docs/api-reference/chat/create
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

_KEY = "OPENAI_API_KEY"


class OpenAISummarizer:
    """A summariser of the OpenAI kind.

    Args:
        model: the provider's name for it.
        api_key: else `OPENAI_API_KEY`. An endpoint of one's own may need none.
        base_url: an OpenAI-compatible endpoint; None for OpenAI's own.
        window: the model's context length in tokens, 0 if unknown.
        limits: time limits.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        window: int = 0,
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
        return f"openai:{self.model}"

    @property
    def window(self) -> int:
        """Tokens; 0 if unknown."""
        return self._window

    def summarize(self, request: SummaryRequest) -> Summary:
        """See `Summarizer.summarize`."""
        check_window(request, self._window)
        return call(request, self._ask, self._limits, who=self.name)

    async def _ask(self, prompt: Prompt) -> Answer:
        try:
            import openai
        except ImportError as error:
            raise SummarizerFailed(
                "unavailable", "the OpenAI SDK is not installed", "pip install 'watchkeeper[openai]'"
            ) from error
        key = key_from(self._api_key, _KEY) or ("none" if self._base_url else None)
        if key is None:
            raise SummarizerFailed("authentication", "there is no key for OpenAI", f"set {_KEY}")
        # The newer name is OpenAI's own; compatible servers know the older one.
        limit: dict[str, Any] = {"max_tokens" if self._base_url else "max_completion_tokens": prompt.max_tokens}
        try:
            async with (
                openai.AsyncOpenAI(
                    api_key=key, base_url=self._base_url, max_retries=0, timeout=self._limits.attempt
                ) as client,
                client.chat.completions.with_streaming_response.create(
                    model=self.model,
                    messages=[{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
                    **limit,
                ) as response,
            ):
                return _answer(await read_json(response.iter_bytes()))
        except openai.OpenAIError as error:
            raise api_failure(error, key=_KEY) from error
        except (SummarizerFailed, Passing, TimeoutError):
            raise
        except Exception as error:
            if is_transport_failure(error):
                raise Passing(SummarizerFailed("network", f"the answer broke off ({type(error).__name__})")) from error
            raise


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

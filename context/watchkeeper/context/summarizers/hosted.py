"""What summarisers of hosted models share: their settings, the key, and what becomes of an SDK's exceptions.

Rules: a provider adds its SDK and the form of its request and answer, nothing else. No exception of an SDK leaves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any, ClassVar

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
)
from watchkeeper.context.summarizers.port import Summary, SummaryRequest


class HostedSummarizer(ABC):
    """A summariser whose model runs elsewhere.

    Args:
        model: the provider's name for it.
        api_key: else the provider's environment variable.
        base_url: another endpoint that speaks the provider's protocol; None for the provider's own.
        window: the model's context length in tokens, 0 if unknown.
        limits: time limits.
    """

    provider: ClassVar[str]
    """The provider, as people write it."""
    extra: ClassVar[str]
    """The optional extra, which is also the name of the SDK's module."""
    key_variable: ClassVar[str]
    sdk_error: ClassVar[str]
    """The name of the SDK's base exception."""
    default_window: ClassVar[int] = 0

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        window: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.model = model
        self._api_key = api_key
        self._base_url = base_url
        self._window = self.default_window if window is None else window
        self._limits = limits or Limits()

    @property
    def name(self) -> str:
        """Shown in reports."""
        return f"{self.extra}:{self.model}"

    @property
    def window(self) -> int:
        """Tokens; 0 if unknown."""
        return self._window

    def summarize(self, request: SummaryRequest) -> Summary:
        """See `Summarizer.summarize`."""
        check_window(request, self._window)
        return call(request, self._attempt, self._limits, who=self.name)

    @abstractmethod
    async def _ask(self, sdk: Any, key: str, prompt: Prompt) -> Answer:
        """One request. May raise whatever the SDK raises."""

    def _key(self) -> str | None:
        return key_from(self._api_key, self.key_variable)

    async def _attempt(self, prompt: Prompt) -> Answer:
        try:
            sdk: Any = import_module(self.extra)
        except ImportError as error:
            raise SummarizerFailed(
                "unavailable",
                f"the {self.provider} SDK is not installed",
                f"pip install 'watchkeeper[{self.extra}]'",
            ) from error
        key = self._key()
        if key is None:
            raise SummarizerFailed("authentication", f"there is no key for {self.provider}", f"set {self.key_variable}")
        try:
            return await self._ask(sdk, key, prompt)
        except (SummarizerFailed, Passing, TimeoutError):
            raise
        except Exception as error:
            if isinstance(error, getattr(sdk, self.sdk_error)):
                raise api_failure(error, key=self.key_variable) from error
            if is_transport_failure(error):
                raise Passing(SummarizerFailed("network", f"the answer broke off ({type(error).__name__})")) from error
            raise

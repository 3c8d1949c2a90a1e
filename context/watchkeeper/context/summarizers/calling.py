"""Calling a model that somebody else runs: limits, one retry, cancellation, and what its failures are called.

Rules:
- Every call ends within `Limits.total` seconds, however slowly bytes arrive; an attempt within `Limits.attempt`.
- One retry, for failures that pass by themselves (lost connection, server error, rate limit); a wrong key, a used-up
  credit or a bad answer is not asked twice.
- At most `MAX_BODY` bytes of an answer are read.
- What is sent was redacted by the caller and is redacted here once more; the failure's text is redacted too.
- No exception of an SDK leaves: each becomes `SummarizerFailed` with a kind, or `Cancelled`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from watchkeeper.context.errors import Cancelled, FailureKind, SummarizerFailed
from watchkeeper.context.redact import redact
from watchkeeper.context.summarizers.port import Summary, SummaryRequest
from watchkeeper.context.summarizers.prompt import instructions, material, parse_answer

MAX_BODY = 4 * 2**20
MAX_MEMORY_CONTEXT = 6_000
_POLL = 0.05
_PASSING: frozenset[FailureKind] = frozenset({"network", "quota", "timeout"})


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds: of one attempt, of the whole call, and the pause before the retry."""

    attempt: float = 60.0
    total: float = 150.0
    pause: float = 1.0


@dataclass(frozen=True)
class Prompt:
    """What is sent, redacted."""

    system: str
    user: str
    max_tokens: int


@dataclass(frozen=True)
class Answer:
    """What came back. `stop` is the provider's own word for why the answer ended."""

    text: str
    stop: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class Passing(Exception):
    """A failure that may be gone at the next attempt. `wait` is what the server asked for, in seconds."""

    def __init__(self, failure: SummarizerFailed, wait: float = 0.0) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.wait = wait


def prompt_for(request: SummaryRequest) -> Prompt:
    """The prompt of a request, redacted, the host's notes capped."""
    memory = request.memory_context
    if len(memory) > MAX_MEMORY_CONTEXT:
        marker = f"\n[… {len(memory) - MAX_MEMORY_CONTEXT:,} characters cut]"
        request = replace(request, memory_context=memory[: MAX_MEMORY_CONTEXT - len(marker)] + marker)
    return Prompt(redact(instructions(request)), redact(material(request)), request.max_tokens)


def call(
    request: SummaryRequest, attempt: Callable[[Prompt], Awaitable[Answer]], limits: Limits, *, who: str
) -> Summary:
    """Ask, at most twice, and check the answer.

    Runs its own event loop in a thread of its own, so that it may be called from anywhere.

    Raises:
        SummarizerFailed, Cancelled
    """
    if request.cancelled():
        raise Cancelled
    prompt = prompt_for(request)
    with ThreadPoolExecutor(1, thread_name_prefix="summarizer") as pool:
        answer = pool.submit(lambda: asyncio.run(_bounded(request, prompt, attempt, limits, who))).result()
    return checked(request, answer)


def checked(request: SummaryRequest, answer: Answer) -> Summary:
    """An answer as a summary, if it is one.

    Raises:
        SummarizerFailed: empty, truncated, refused, oversized or malformed.
    """
    if answer.stop in ("length", "max_tokens", "maxTokens", "model_context_window_exceeded"):
        raise SummarizerFailed("truncated", "the answer ended at its token limit", "raise the summary's token limit")
    if answer.stop in ("content_filter", "refusal"):
        raise SummarizerFailed("refused", "the model declined to summarise this part")
    if not answer.text.strip():
        raise SummarizerFailed("empty", "the model answered without content")
    most = max(len(request.text), 4 * request.max_tokens)
    if len(answer.text) > most or answer.output_tokens > max(request.max_tokens, request.text_tokens):
        raise SummarizerFailed("oversized", f"the answer has {len(answer.text):,} characters, more than was asked for")
    return Summary(parse_answer(answer.text), answer.model, answer.input_tokens, answer.output_tokens)


def check_window(request: SummaryRequest, window: int) -> None:
    """Refuse what cannot fit, before it is sent.

    Raises:
        SummarizerFailed: `window`.
    """
    if window and request.text_tokens + request.max_tokens > window:
        raise SummarizerFailed(
            "window",
            f"a part of {request.text_tokens:,} tokens does not fit into a window of {window:,}",
            "set the summariser's context length, or use smaller parts",
        )


async def read_json(chunks: Any) -> dict[str, Any]:
    """The JSON object in a response body, read up to `MAX_BODY`.

    Raises:
        SummarizerFailed: `oversized` or `malformed`.
    """
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_BODY:
            raise SummarizerFailed("oversized", f"the answer is larger than {MAX_BODY:,} bytes")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise SummarizerFailed("malformed", f"the server's answer is not JSON: {str(error)[:120]}") from error
    if not isinstance(value, dict):
        raise SummarizerFailed("malformed", "the server's answer is not a JSON object")
    return value


def api_failure(error: Exception, *, key: str) -> SummarizerFailed | Passing:
    """What an SDK's exception means. Both SDKs share the shape: status_code, response, body.

    Args:
        key: the environment variable that a wrong key would be in.
    """
    name = type(error).__name__
    status = getattr(error, "status_code", None)
    detail = redact(f"{name}: {error}")[:200]
    if status in (401, 403) or (status is None and "api_key" in str(error)):
        return SummarizerFailed("authentication", f"the provider refused the key ({detail})", f"set {key}")
    if status == 402 or (status == 429 and "insufficient_quota" in str(getattr(error, "body", ""))):
        return SummarizerFailed("quota", f"the credit is used up ({detail})", "add credit, or use another summariser")
    if status == 429:
        return Passing(SummarizerFailed("quota", f"rate limited ({detail})", "try again later"), _retry_after(error))
    if status == 404:
        return SummarizerFailed("unavailable", f"no such model or address ({detail})", "check the model and base_url")
    if status in (400, 413, 422):
        words = str(error).lower()
        if status == 413 or "context" in words or "too long" in words or "maximum" in words:
            return SummarizerFailed(
                "window", f"the part is too large for the model ({detail})", "set its context length"
            )
        return SummarizerFailed(
            "malformed", f"the provider refused the request ({detail})", "check the model's settings"
        )
    if name == "APITimeoutError":
        return Passing(SummarizerFailed("timeout", "the provider did not answer in time", "raise the time limit"))
    return Passing(
        SummarizerFailed("network", f"the provider was not reached ({detail})", "check base_url and network")
    )


def is_transport_failure(error: Exception) -> bool:
    """Whether an exception comes from below the SDK: a connection lost in the middle of an answer."""
    return isinstance(error, OSError) or any(
        c.__module__.startswith(("httpx", "httpcore")) for c in type(error).__mro__
    )


def key_from(given: str | None, variable: str) -> str | None:
    """The given key, or that of the environment; None if there is none."""
    return given or os.environ.get(variable) or None


async def _bounded(
    request: SummaryRequest, prompt: Prompt, attempt: Callable[[Prompt], Awaitable[Answer]], limits: Limits, who: str
) -> Answer:
    asking = asyncio.ensure_future(_twice(prompt, attempt, limits))
    deadline = monotonic() + limits.total
    try:
        while True:
            done, _ = await asyncio.wait({asking}, timeout=_POLL)
            if done:
                return asking.result()
            if request.cancelled():
                raise Cancelled
            if monotonic() >= deadline:
                raise SummarizerFailed("timeout", f"{who} took longer than {limits.total:g} s", "raise the time limit")
    finally:
        if not asking.done():
            asking.cancel()
            await asyncio.wait({asking}, timeout=2.0)


async def _twice(prompt: Prompt, attempt: Callable[[Prompt], Awaitable[Answer]], limits: Limits) -> Answer:
    failure, wait = await _once(prompt, attempt, limits)
    if isinstance(failure, Answer):
        return failure
    if failure.kind not in _PASSING or wait is None:
        raise failure
    await asyncio.sleep(min(max(limits.pause, wait), limits.total / 4))
    again, _ = await _once(prompt, attempt, limits)
    if isinstance(again, Answer):
        return again
    raise again


async def _once(
    prompt: Prompt, attempt: Callable[[Prompt], Awaitable[Answer]], limits: Limits
) -> tuple[Answer | SummarizerFailed, float | None]:
    """An answer, or a failure and how long to wait before asking again (None: not at all)."""
    try:
        async with asyncio.timeout(limits.attempt):
            return await attempt(prompt), None
    except TimeoutError:
        return SummarizerFailed("timeout", f"no answer within {limits.attempt:g} s", "raise the time limit"), 0.0
    except Passing as passing:
        return passing.failure, passing.wait
    except SummarizerFailed as failure:
        return failure, None


def _retry_after(error: Exception) -> float:
    headers = getattr(getattr(error, "response", None), "headers", {})
    try:
        return max(0.0, float(headers.get("retry-after", 0)))
    except ValueError:
        return 0.0

"""The built-in engine keeps the contract of engines, in both tail modes; so does the smallest engine there can be."""

from watchkeeper.context import ContextCompressor, ContextEngine
from watchkeeper.context.testing import EngineContract


class TestLegacyCompressor(EngineContract):
    def make_engine(self):
        return ContextCompressor(8_000)


class TestLeanCompressor(EngineContract):
    def make_engine(self):
        return ContextCompressor(8_000, {"tail_mode": "lean"})


class KeepLast(ContextEngine):
    """The least an engine can be: five members, written for the oldest interface."""

    def __init__(self):
        self.update_model("", 8_000)

    @property
    def name(self):
        return "keep_last"

    def update_from_response(self, usage):
        self.last_prompt_tokens = usage["prompt_tokens"]
        self.last_completion_tokens = usage["completion_tokens"]
        self.last_total_tokens = usage["total_tokens"]

    def should_compress(self, prompt_tokens=None):
        return (prompt_tokens or self.last_prompt_tokens) >= self.threshold_tokens

    def compress(self, messages, current_tokens=None, **_):
        last = next((i for i in range(len(messages) - 1, 0, -1) if messages[i]["role"] == "user"), 0)
        if last < 10:
            return messages
        self.compression_count += 1
        return [*messages[:1], *messages[last:]]


class TestSmallestEngine(EngineContract):
    def make_engine(self):
        return KeepLast()

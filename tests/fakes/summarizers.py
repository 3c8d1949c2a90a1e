"""Summarisers without a model, each with one habit."""

import threading

from watchkeeper.context.core.sections import StructuredSummary, structured
from watchkeeper.context.errors import SummarizerFailed
from watchkeeper.context.summarizers.port import Summary, SummaryRequest


class Recording:
    """Answers with what it is told to, and remembers every request."""

    name = "recording"

    def __init__(self, *answers: dict[str, list[str]], window: int = 100_000):
        self.window = window
        self.requests: list[SummaryRequest] = []
        self._answers = list(answers)
        self._lock = threading.Lock()

    def summarize(self, request):
        with self._lock:
            self.requests.append(request)
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return Summary(structured(answer), model="m-1", input_tokens=request.text_tokens, output_tokens=20)


class Failing:
    """Raises what it is given, each time."""

    name = "failing"
    window = 100_000

    def __init__(self, error: Exception):
        self.error = error
        self.asked = 0

    def summarize(self, request):
        self.asked += 1
        raise self.error


class Chattering(Recording):
    """Gives back more than it was given."""

    def __init__(self):
        super().__init__({"done": ["word " * 30_000]})


class Stuck:
    """Answers only when the caller no longer wants an answer."""

    name = "stuck"
    window = 100_000

    def __init__(self):
        self.asked = threading.Event()

    def summarize(self, request):
        self.asked.set()
        for _ in range(2_000):
            if request.cancelled():
                break
            threading.Event().wait(0.01)
        raise SummarizerFailed("timeout", "gave up")


class Silent(Recording):
    """Answers with nothing."""

    def __init__(self):
        super().__init__({})

    def summarize(self, request):
        return Summary(StructuredSummary())

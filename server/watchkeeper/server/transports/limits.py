"""How many requests one client may send: a bucket that fills at a steady rate, for each holder of a token or address.

Rules: what is refused gets 429 and when to come again, and costs nothing else. Buckets that are full again are
forgotten, so their number is bounded by the clients of the last moments.
"""

import math
import time
from collections.abc import Callable

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

BURST_S = 5.0
"""How many seconds' worth of requests may come at once."""
FORGET_AT = 1_000


class Buckets:
    """``rate``: requests a second."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._most = max(1.0, rate * BURST_S)
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, who: str) -> float:
        """Seconds to wait before the next try; 0 where this one may go on."""
        now = self._clock()
        left, at = self._left.get(who, (self._most, now))
        left = min(self._most, left + (now - at) * self._rate)
        if left < 1:
            self._left[who] = (left, now)
            return (1 - left) / self._rate
        self._left[who] = (left - 1, now)
        if len(self._left) > FORGET_AT:
            self._left = {
                name: (had, seen)
                for name, (had, seen) in self._left.items()
                if had + (now - seen) * self._rate < self._most
            }
        return 0


class RateLimited:
    """Counts requests by the holder of the token, where it is known by now, else by the client's address."""

    def __init__(self, app: ASGIApp, buckets: Buckets) -> None:
        self.app = app
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            user = scope.get("user")
            name = user.display_name if user is not None and user.is_authenticated else ""
            client = scope.get("client")
            wait = self._buckets.take(f"token {name}" if name else f"address {client[0] if client else ''}")
            if wait:
                answer = PlainTextResponse(
                    "Too many requests; server.max_requests_per_s sets how many.\n",
                    status_code=429,
                    headers={"Retry-After": str(math.ceil(wait))},
                )
                await answer(scope, receive, send)
                return
        await self.app(scope, receive, send)

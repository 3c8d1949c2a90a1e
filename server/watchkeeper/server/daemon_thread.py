"""Work that blocks, in threads that keep no process from ending.

Rules: standard library only. For what may block for as long as somebody else likes, such as a write to a client that
does not read: whoever waits can be cancelled, and the end of the process waits for nobody. Other work belongs into the
threads of anyio, which are fewer.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def outcome_of(work: Callable[[], T], name: str) -> T | BaseException:
    """What ``work`` gives or raises; ``name`` is the thread's. Cancelled, it leaves the work to itself."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T | BaseException] = loop.create_future()

    def finish(outcome: T | BaseException) -> None:
        if not done.done():
            done.set_result(outcome)

    def run() -> None:
        outcome: T | BaseException
        try:
            outcome = work()
        except BaseException as error:  # noqa: BLE001 - told by whoever waits
            outcome = error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(finish, outcome)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done


async def in_daemon_thread(work: Callable[[], T], name: str) -> T:
    """What ``work`` gives; raises what it raises."""
    outcome = await outcome_of(work, name)
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome

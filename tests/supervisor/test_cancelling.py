"""Tasks with something to clean up are cancelled once, however often and in whatever way their owners are."""

import asyncio

import anyio
import pytest

from watchkeeper.supervisor.cancelling import cancel_once, end_task, joined

pytestmark = pytest.mark.anyio
TURNS = 20


class Work:
    """Waits for ever; cancelled, it takes some turns to clean up."""

    def __init__(self) -> None:
        self.cleaned = False
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            self.cleaned = True


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_scope_that_is_cancelled_lets_the_task_clean_up() -> None:
    work = Work()
    with anyio.CancelScope() as scope:
        asyncio.get_running_loop().call_soon(scope.cancel)
        await joined(work.task)
    assert scope.cancelled_caught and work.cleaned and work.task.cancelled()


async def test_owners_that_are_cancelled_again_and_again_wait_for_the_clean_up() -> None:
    work = Work()
    await turns(2)
    owner = asyncio.create_task(end_task(work.task))
    for _ in range(5):
        await turns(2)
        owner.cancel()
        cancel_once(work.task)
        assert not owner.done()
    with pytest.raises(asyncio.CancelledError):
        await owner
    assert work.cleaned


async def test_what_a_task_gives_or_raises_is_given_and_raised() -> None:
    async def given() -> int:
        return 3

    async def fails() -> int:
        raise ValueError("so")

    assert await joined(asyncio.create_task(given())) == 3
    with pytest.raises(ValueError, match="so"):
        await joined(asyncio.create_task(fails()))

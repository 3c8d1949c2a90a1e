"""Many tasks at once in one real browser: each with its own context, tabs, dialogs and cookies."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from fakes.site import Site

from watchkeeper.supervisor import LocalEndpoint, Supervisor, SupervisorRegistry

pytestmark = [pytest.mark.anyio, pytest.mark.chrome, pytest.mark.timeout(400)]
TASKS = 50
AT_ONCE = 8
"""How many act at the same time: this tests what is kept apart, not how much a small machine can bear."""
ENDPOINT = LocalEndpoint(headless=True)
GUARD_S = 150.0


async def test_fifty_tasks_share_a_browser_and_nothing_else(registry: SupervisorRegistry, site: Site) -> None:
    text = "<script>document.cookie = 'who=' + location.search.slice(1); got = [confirm(location.search)]</script>"
    url = site.page("/", text)
    turns = asyncio.Semaphore(AT_ONCE)

    async def everybody(act: Callable[[int], Awaitable[None]]) -> None:
        async def one(number: int) -> None:
            async with turns:
                await act(number)

        async with asyncio.timeout(GUARD_S):
            await asyncio.gather(*(one(number) for number in range(TASKS)))

    def task(number: int) -> Supervisor:
        found = registry.get(f"task-{number}")
        assert found is not None
        return found

    async def ask(number: int) -> None:
        supervisor = await registry.get_or_start(f"task-{number}", ENDPOINT)
        await supervisor.navigate(f"{url}?{number}", timeout=GUARD_S)
        await supervisor.wait_for(lambda view: view.pending_dialogs or None, GUARD_S)

    async def answer(number: int) -> None:
        supervisor = task(number)
        assert [d.message for d in supervisor.snapshot().pending_dialogs] == [f"?{number}"], "its own, and no other"
        await supervisor.answer_dialog("accept" if number % 2 else "dismiss")
        closed = await supervisor.wait_for(lambda view: view.recent_dialogs or None, GUARD_S)
        assert [d.closed_by for d in closed] == ["agent"]
        got, cookie = await supervisor.evaluate("[got[0], document.cookie]", timeout=GUARD_S)
        assert (got, cookie) == (bool(number % 2), f"who={number}")
        assert len(supervisor.snapshot().tabs) == 1

    await everybody(ask)
    assert all(len(supervisor.snapshot().pending_dialogs) == 1 for supervisor in registry.supervisors)
    assert len({supervisor.browser for supervisor in registry.supervisors}) == 1
    await everybody(answer)

    async def end(number: int) -> None:
        await registry.stop(f"task-{number}")

    last = await registry.get_or_start("last", ENDPOINT)
    await everybody(end)
    contexts = (await last.browser.command("Target.getBrowserContexts"))["browserContextIds"]
    assert len(contexts) == 1, "what a task had is gone with it"
    assert last.browser._by_session == {} and last.browser._by_target == {}

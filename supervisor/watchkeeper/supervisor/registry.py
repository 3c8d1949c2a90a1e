"""Which task has which supervisor, and which browsers there are.

Rules: one supervisor per task, one browser per endpoint. ``get_or_start`` is idempotent also under concurrent calls; a
different endpoint for a task stops its old supervisor and starts anew, and nothing is carried across. A browser ends
with its last task; a start that fails or is cancelled leaves nothing behind. A task that nobody has used for
``SupervisorOptions.idle_timeout_s`` is ended, and the next caller is told. Many tasks end side by side, some at a time.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, TypeVar
from weakref import WeakValueDictionary

from anyio import CancelScope

from .backends import Endpoint
from .browser import Browser
from .core.dialogs import DialogPolicy
from .options import SupervisorOptions
from .starting import Started, abandon, isolates, start
from .supervisor import Supervisor

Key = TypeVar("Key")
IDLE_CHECKS = 10
"""How often idle tasks are looked for, in each span of ``idle_timeout_s``."""
END_AT_ONCE = 8
"""How many tasks are ended at the same time: a browser that closes more at once takes longer for each."""
ENDED_IDLE_KEPT = 1_000
"""Names of tasks that ended idle and have yet to be told so; of more the oldest are forgotten."""
Reason = Literal["closed", "idle", "replaced"]
Ended = Callable[[Supervisor, Reason], None]
"""Told of each supervisor that has been closed, before its browser is; returns at once and raises nothing."""


class SupervisorRegistry:
    """For one event loop. ``stop_all`` ends everything that it started. ``clock`` gives seconds and never runs back."""

    def __init__(
        self,
        *,
        options: SupervisorOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        ended: Ended = lambda supervisor, reason: None,
    ) -> None:
        self.options = options or SupervisorOptions()
        self._clock = clock
        self._ended = ended
        self._supervisors: dict[str, Supervisor] = {}
        self._browsers: dict[Endpoint, Browser] = {}
        self._task_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._endpoint_locks: WeakValueDictionary[Endpoint, asyncio.Lock] = WeakValueDictionary()
        self._expected: tuple[Endpoint, asyncio.Task[Started]] | None = None
        self._ended_idle: OrderedDict[str, None] = OrderedDict()
        self._turns = asyncio.Semaphore(END_AT_ONCE)
        self._watch: asyncio.Task[None] | None = None

    def get(self, task_id: str) -> Supervisor | None:
        """The supervisor of a task, when it has one."""
        return self._supervisors.get(task_id)

    @property
    def supervisors(self) -> tuple[Supervisor, ...]:
        return tuple(self._supervisors.values())

    async def get_or_start(
        self, task_id: str, endpoint: Endpoint, *, dialog_policy: DialogPolicy | None = None
    ) -> Supervisor:
        """The supervisor of a task on an endpoint, started where there is none.

        Raises: BrowserNotFound, LaunchFailed, EndpointUnreachable.
        """
        async with _lock(self._task_locks, task_id):
            supervisor = self._supervisors.get(task_id)
            notice = ""
            if task_id in self._ended_idle:
                notice = "The task was ended because nobody used it for long: its tabs and sign-ins are gone."
            if supervisor is not None and supervisor.endpoint == endpoint:
                if supervisor.lost is None or await supervisor.browser.back(self.options.launch_timeout_s):
                    supervisor.use.touch()
                    return supervisor
                notice = _restarted(supervisor)
            if supervisor is not None:
                await self._stop(task_id, "replaced")
            supervisor = await self._started(task_id, endpoint, dialog_policy)
            supervisor.notice = notice
            self._ended_idle.pop(task_id, None)
            self._supervisors[task_id] = supervisor
            if self._watch is None and self.options.idle_timeout_s is not None:
                self._watch = asyncio.create_task(self._watch_idle(), name="watchkeeper-idle")
            return supervisor

    async def expect(self, endpoint: Endpoint, starting: "asyncio.Task[Started]") -> None:
        """A browser is being started already, with gates that are ``UNDECIDED``: the first task on this endpoint gets
        it. Where its command line would be another by our options it is ended, and so it is by ``end_expected``."""
        policy = self.options.egress
        if policy is None or policy.checks_loopback or self._expected is not None or not isolates(endpoint):
            await abandon(starting)
        else:
            self._expected = (endpoint, starting)

    async def end_expected(self) -> None:
        """End the browser that was expected, where no task has taken it."""
        if self._expected is not None:
            (_, starting), self._expected = self._expected, None
            await abandon(starting)

    async def stop(self, task_id: str) -> bool:
        """End a task; False where there is none of this name."""
        async with _lock(self._task_locks, task_id):
            self._ended_idle.pop(task_id, None)
            return await self._stop(task_id, "closed")

    async def stop_all(self) -> None:
        """End every task and every browser that was started, those that are being started too. Bounded."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None

        async def stop(task_id: str) -> None:
            async with self._turns:
                await self.stop(task_id)

        # With a browser of ours everything in it ends at once; one task after the other would take much longer.
        await asyncio.gather(*(browser.close() for browser in self._browsers.values() if browser.owned))
        await asyncio.gather(*(stop(task_id) for task_id in {*self._supervisors, *self._task_locks}))
        await asyncio.gather(*(browser.close() for browser in self._browsers.values()))
        self._browsers.clear()
        await self.end_expected()

    async def end_idle(self) -> tuple[str, ...]:
        """End the tasks that nobody has used for ``idle_timeout_s``; gives their names. Called by itself as well."""
        idle = [task_id for task_id, supervisor in self._supervisors.items() if self._is_idle(supervisor)]
        ended = await asyncio.gather(*map(self._end_if_idle, idle))
        return tuple(task_id for task_id, is_ended in zip(idle, ended, strict=True) if is_ended)

    def _is_idle(self, supervisor: Supervisor) -> bool:
        limit = self.options.idle_timeout_s
        return limit is not None and supervisor.use.idle_s >= limit

    async def _end_if_idle(self, task_id: str) -> bool:
        async with self._turns, _lock(self._task_locks, task_id):
            supervisor = self._supervisors.get(task_id)
            if supervisor is None or not self._is_idle(supervisor):
                return False  # somebody was faster
            self._ended_idle[task_id] = None
            while len(self._ended_idle) > ENDED_IDLE_KEPT:
                self._ended_idle.popitem(last=False)
            return await self._stop(task_id, "idle")

    async def _watch_idle(self) -> None:
        while self.options.idle_timeout_s is not None:
            await asyncio.sleep(self.options.idle_timeout_s / IDLE_CHECKS)
            await self.end_idle()

    async def _stop(self, task_id: str, reason: Reason) -> bool:
        supervisor = self._supervisors.pop(task_id, None)
        if supervisor is None:
            return False
        try:
            await supervisor.close()
        finally:
            self._ended(supervisor, reason)
        browser = supervisor.browser
        async with _lock(self._endpoint_locks, browser.endpoint):
            await self._end_unused(browser)
        return True

    async def _started(self, task_id: str, endpoint: Endpoint, dialog_policy: DialogPolicy | None) -> Supervisor:
        """A supervisor whose browser knows it, before anybody can find that browser without tasks."""
        async with _lock(self._endpoint_locks, endpoint):
            browser = await self._browser(endpoint)
            supervisor = Supervisor(task_id, browser, self.options, dialog_policy, self._clock)
            try:
                await browser.add_task(supervisor)
            except BaseException:
                with CancelScope(shield=True):
                    await supervisor.close()
                    await self._end_unused(browser)
                raise
            return supervisor

    async def _end_unused(self, browser: Browser) -> None:
        if not browser.has_tasks and self._browsers.get(browser.endpoint) is browser:
            del self._browsers[browser.endpoint]
            await browser.close()

    async def _browser(self, endpoint: Endpoint) -> Browser:
        browser = self._browsers.get(endpoint)
        if browser is not None and browser.lost is None:
            return browser
        if browser is not None:
            await browser.close()
        started = await self._start(endpoint)
        browser = Browser(endpoint, started.connected, isolated=isolates(endpoint), gates=started.gates)
        try:
            await browser.start()
        except BaseException:
            with CancelScope(shield=True):
                await browser.close()
            raise
        self._browsers[endpoint] = browser
        return browser

    async def _start(self, endpoint: Endpoint) -> Started:
        """Where a browser for it is expected, that one."""
        if self._expected is None or self._expected[0] != endpoint:
            return await start(endpoint, timeout=self.options.launch_timeout_s, egress=self.options.egress)
        (_, starting), self._expected = self._expected, None
        try:
            await asyncio.wait([starting])
        except asyncio.CancelledError:
            await abandon(starting)
            raise
        started = starting.result()
        if started.gates is not None and self.options.egress is not None:
            started.gates.decide(self.options.egress)
        return started


def _lock(locks: "WeakValueDictionary[Key, asyncio.Lock]", key: Key) -> asyncio.Lock:
    """The lock of a key, for as long as somebody holds it or waits for it."""
    lock = locks.get(key)
    if lock is None:
        lock = locks[key] = asyncio.Lock()
    return lock


def _restarted(before: Supervisor) -> str:
    """What the next caller is told of a supervisor that had to be started anew."""
    browser = before.browser
    reason = browser.ended or browser.lost or "the connection ended"
    if browser.owned:
        return f"The browser was started again ({reason}): tabs, sign-ins and page state of before are gone."
    return f"The connection was made anew ({reason}): the tabs of before are no longer followed."

"""Which task has which supervisor, and which browsers there are.

Rules: one supervisor per task, one browser per endpoint. ``get_or_start`` is idempotent also under concurrent calls; a
different endpoint for a task stops its old supervisor and starts anew, and nothing is carried across. A browser ends
with its last task.
"""

import asyncio
from collections import defaultdict

from .backends import Endpoint, LocalEndpoint, connect
from .backends.launch import check_proxy
from .browser import Browser
from .core.dialogs import DialogPolicy
from .egress import Gates
from .errors import LaunchFailed, SupervisorError
from .options import SupervisorOptions
from .supervisor import Supervisor


class SupervisorRegistry:
    """For one event loop. ``stop_all`` ends everything that it started."""

    def __init__(self, *, options: SupervisorOptions | None = None) -> None:
        self.options = options or SupervisorOptions()
        self._supervisors: dict[str, Supervisor] = {}
        self._browsers: dict[Endpoint, Browser] = {}
        self._task_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._endpoint_locks: defaultdict[Endpoint, asyncio.Lock] = defaultdict(asyncio.Lock)

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
        async with self._task_locks[task_id]:
            supervisor = self._supervisors.get(task_id)
            notice = ""
            if supervisor is not None and supervisor.endpoint == endpoint:
                if supervisor.lost is None or await supervisor.browser.back(self.options.launch_timeout_s):
                    return supervisor
                notice = _restarted(supervisor)
            if supervisor is not None:
                await self._stop(task_id)
            browser = await self._browser(endpoint)
            supervisor = Supervisor(task_id, browser, self.options, dialog_policy)
            supervisor.notice = notice
            await browser.add_task(supervisor)
            self._supervisors[task_id] = supervisor
            return supervisor

    async def stop(self, task_id: str) -> bool:
        """End a task; False where there is none of this name."""
        async with self._task_locks[task_id]:
            return await self._stop(task_id)

    async def stop_all(self) -> None:
        """End every task and every browser that was started. Bounded."""
        for task_id in list(self._supervisors):
            await self.stop(task_id)
        for browser in list(self._browsers.values()):
            await browser.close()
        self._browsers.clear()

    async def _stop(self, task_id: str) -> bool:
        supervisor = self._supervisors.pop(task_id, None)
        if supervisor is None:
            return False
        await supervisor.close()
        browser = supervisor.browser
        async with self._endpoint_locks[browser.endpoint]:
            if not browser.has_tasks and self._browsers.get(browser.endpoint) is browser:
                del self._browsers[browser.endpoint]
                await browser.close()
        return True

    async def _browser(self, endpoint: Endpoint) -> Browser:
        async with self._endpoint_locks[endpoint]:
            browser = self._browsers.get(endpoint)
            if browser is not None and browser.lost is None:
                return browser
            if browser is not None:
                await browser.close()
            isolated = isinstance(endpoint, LocalEndpoint) and endpoint.user_data_dir is None
            gates = await self._gates(endpoint, isolated)
            try:
                route = gates.route if gates is not None else None
                connected = await connect(endpoint, timeout=self.options.launch_timeout_s, route=route)
            except BaseException:
                if gates is not None:
                    await gates.close()
                raise
            browser = Browser(endpoint, connected, isolated=isolated, gates=gates)
            try:
                await browser.start()
            except SupervisorError:
                await browser.close()
                raise
            self._browsers[endpoint] = browser
            return browser

    async def _gates(self, endpoint: Endpoint, isolated: bool) -> Gates | None:
        """Browsers that we start connect through gates of ours, where there is a policy for it."""
        if self.options.egress is None or not isinstance(endpoint, LocalEndpoint):
            return None
        if endpoint.proxy is not None:
            check_proxy(endpoint.proxy)
        try:
            return await Gates.start(self.options.egress, endpoint.proxy, isolated=isolated)
        except OSError as error:
            raise LaunchFailed(
                f"The proxy that checks addresses cannot listen on loopback: {error.strerror or error}.",
                "Check the limits on open files, and that 127.0.0.1 is up.",
            ) from None


def _restarted(before: Supervisor) -> str:
    """What the next caller is told of a supervisor that had to be started anew."""
    browser = before.browser
    reason = browser.ended or browser.lost or "the connection ended"
    if browser.owned:
        return f"The browser was started again ({reason}): tabs, sign-ins and page state of before are gone."
    return f"The connection was made anew ({reason}): the tabs of before are no longer followed."

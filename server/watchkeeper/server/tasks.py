"""Tasks: which browser each works with, who may reach it, and when it ends.

Rules: a task is named by its client; over HTTP with tokens each principal has names of its own, and cannot reach those
of others. Each may have ``browser.max_tasks`` open, never one more, and what others have open takes nothing from that.
A task begins with ``browser_navigate``; it ends when the registry finds it idle for too long, or with the server. One
whose browser is gone makes room for a new one. Only this module makes endpoints and options of the supervisor from
settings.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from .errors import ToolError
from .observability.counters import Counters, of_task
from .security.declared_secrets import DeclaredSecrets
from .security.files import refusal
from .security.url_policy import UrlPolicy
from .settings import Settings

if TYPE_CHECKING:
    import asyncio

    from watchkeeper.supervisor import DialogPolicy, Endpoint, Supervisor
    from watchkeeper.supervisor.registry import Reason
    from watchkeeper.supervisor.starting import Started

log = logging.getLogger(__name__)
BROWSER_TOOLS = frozenset({"cdp", "dialogs"})
TASK_ID_LENGTH = 64


class Registry(Protocol):
    """What tasks need of ``SupervisorRegistry``."""

    def get(self, task_id: str) -> "Supervisor | None": ...

    async def get_or_start(
        self, task_id: str, endpoint: "Endpoint", *, dialog_policy: "DialogPolicy | None" = None
    ) -> "Supervisor": ...

    async def stop(self, task_id: str) -> bool: ...

    async def stop_all(self) -> None: ...

    async def expect(self, endpoint: "Endpoint", starting: "asyncio.Task[Started]") -> None: ...

    async def end_expected(self) -> None: ...

    async def end_idle(self) -> tuple[str, ...]: ...


class Tasks:
    """``registry`` and ``clock`` are for tests; the real ones are made on first use."""

    def __init__(
        self, settings: Settings, registry: Registry | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings = settings
        self.endpoint = endpoint(settings)
        self.secrets = DeclaredSecrets(settings)
        self._registry = registry
        self._clock = clock
        self._found = False
        self._named: dict[str, tuple[str, str]] = {}
        """The principal and the task id of every key that has a supervisor, or is getting one."""
        self._starting: Counter[str] = Counter()
        self.counters = Counters()
        self._listeners: list[Callable[[str, str], None]] = []

    def capabilities(self) -> frozenset[str]:
        """What the backend can serve; without IO beyond looking for a browser's file.

        Looked for until one is found, because every call asks.
        """
        if not self._found:
            from watchkeeper.supervisor import LocalEndpoint, find_browser

            named = not isinstance(self.endpoint, LocalEndpoint) or self.settings.browser.executable is not None
            self._found = named or find_browser() is not None
        return BROWSER_TOOLS if self._found else frozenset()

    async def start(self, principal: str, task_id: str, dialog_policy: "DialogPolicy | None" = None) -> "Supervisor":
        """The task's supervisor, started where there is none.

        Raises: ToolError, and what starting a browser raises.
        """
        key = _key(principal, task_id)
        running = self._running(key)
        if running is None:
            await self._make_room(principal, key)
        elif dialog_policy is not None and running.state.options.dialog_policy != dialog_policy:
            raise ToolError(
                "policy_is_set",
                f"Task {task_id!r} has the dialog policy {running.state.options.dialog_policy}, set when it started.",
                "Leave dialog_policy out, or use another task_id.",
            )
        self._named[key] = (principal, task_id)
        self._starting[key] += 1
        try:
            started = await self._made().get_or_start(key, self.endpoint, dialog_policy=dialog_policy)
        finally:
            self._starting[key] -= 1
            self._forget(key)
        if started is not running:
            about = {"browser": started.browser.product, "pid": started.browser.pid}
            log.info("task begins in %s", started.browser.product, extra=about)
            self.counters.of(principal).events["tasks", "started"] += 1
            self._tell(principal, task_id)
        return started

    async def _make_room(self, principal: str, key: str) -> None:
        """Raises ToolError ``too_many_tasks``. Whoever returns from here takes the place before anybody else runs."""
        most = self.settings.browser.max_tasks
        while key not in self._named:
            mine = [name for name, (who, _) in self._named.items() if who == principal]
            if len(mine) < most:
                return
            gone = next((name for name in mine if self._is_gone(name)), None)
            if gone is None:
                raise ToolError(
                    "too_many_tasks",
                    f"{len(mine)} tasks are open, as many as browser.max_tasks allows.",
                    "Use the task_id of one that is open, or end one with browser_close.",
                )
            await self._made().stop(gone)
            self._forget(gone)

    def _is_gone(self, key: str) -> bool:
        """Whether nothing is left of the task's browser."""
        running = self._running(key)
        return running is not None and running.lost is not None and running.browser.owned and not running.use.running

    def _forget(self, key: str) -> None:
        """Unless the task has a supervisor, or gets one."""
        if not self._starting[key]:
            del self._starting[key]
            if self._running(key) is None:
                self._named.pop(key, None)

    def get(self, principal: str, task_id: str) -> "Supervisor | None":
        """The task's supervisor, when it has one; using it keeps the task from ending."""
        found = self.peek(principal, task_id)
        if found is not None:
            found.use.touch()
        return found

    def peek(self, principal: str, task_id: str) -> "Supervisor | None":
        """The task's supervisor, when it has one; looking keeps no task from ending."""
        return self._running(_key(principal, task_id))

    def live(self, principal: str) -> tuple[str, ...]:
        """The ids of the principal's tasks that have a browser, in alphabetical order."""
        named = [(key, name) for key, (who, name) in self._named.items() if who == principal]
        return tuple(sorted(name for key, name in named if self._running(key) is not None))

    def listen(self, listener: Callable[[str, str], None]) -> None:
        """Have ``listener(principal, task_id)`` called whenever a task has begun, ended, or got another supervisor.

        It returns at once and raises nothing.
        """
        self._listeners.append(listener)

    def _tell(self, principal: str, task_id: str) -> None:
        for listener in tuple(self._listeners):
            listener(principal, task_id)

    def require(self, principal: str, task_id: str) -> "Supervisor":
        """Raises ToolError ``no_task``."""
        found = self.get(principal, task_id)
        if found is None:
            raise ToolError(
                "no_task",
                f"Task {task_id!r} has no browser yet (or it ended, being idle).",
                "Call browser_navigate(url) first; it starts one.",
            )
        return found

    async def stop(self, principal: str, task_id: str) -> bool:
        """End a task; False where it had no browser."""
        return await self._made().stop(_key(principal, task_id))

    @contextmanager
    def using(self, principal: str, task_id: str) -> Iterator[None]:
        """For as long as a call runs: the task does not become idle."""
        found = self.peek(principal, task_id)
        with found.use.during() if found is not None else nullcontext():
            yield

    async def end_idle(self) -> None:
        """Stop what was not used for too long. The registry does this by itself as well."""
        await self._made().end_idle()

    def _ended(self, supervisor: "Supervisor", reason: "Reason") -> None:
        key = supervisor.task_id
        principal, task_id = self._named[key]
        events = self.counters.of(principal).events
        how = reason if supervisor.lost is None else "lost"
        events["tasks", how] += 1
        events.update(of_task(supervisor))
        about = {"task": task_id, "principal": principal, "reason": how}
        log.info("task ends: %s", supervisor.lost or reason, extra=about)
        self._forget(key)
        self._tell(principal, task_id)

    async def expect(self, endpoint: "Endpoint", starting: "asyncio.Task[Started]") -> None:
        """A browser is being started before there is a task: the first one gets it, if it is on this endpoint."""
        await self._made().expect(endpoint, starting)

    async def end_expected(self) -> None:
        """End that browser, where no task has taken it."""
        if self._registry is not None:
            await self._registry.end_expected()

    async def close(self) -> None:
        """End every task and every browser that was started."""
        if self._registry is not None:
            await self._registry.stop_all()
        self._named.clear()

    def _running(self, key: str) -> "Supervisor | None":
        return None if self._registry is None else self._registry.get(key)

    def _made(self) -> Registry:
        if self._registry is None:
            from watchkeeper.supervisor import SupervisorRegistry

            self._registry = SupervisorRegistry(options=options(self.settings), clock=self._clock, ended=self._ended)
        return self._registry


def checked_task_id(task_id: str) -> str:
    """Raises ToolError ``invalid_arguments``. Checked here, for said in every tool's schema it would be paid for in
    every conversation."""
    if not 1 <= len(task_id) <= TASK_ID_LENGTH:
        raise ToolError(
            "invalid_arguments",
            f"task_id has {len(task_id)} characters; 1 to {TASK_ID_LENGTH} are possible. Nothing was done.",
            "Choose a short name.",
        )
    return task_id


def _key(principal: str, task_id: str) -> str:
    # No principal has a slash in its name (see http.py), so no task id of one reads as another's.
    return f"{principal}/{task_id}" if principal else task_id


def endpoint(settings: Settings) -> "Endpoint":
    """Raises InvalidArgument when ``browser.cdp_url`` cannot be an address."""
    from watchkeeper.supervisor import CdpEndpoint, LocalEndpoint
    from watchkeeper.supervisor.backends import BrowserbaseEndpoint

    browser = settings.browser
    if browser.backend == "browserbase":
        return BrowserbaseEndpoint()
    if browser.backend == "cdp" and not browser.cdp_url:
        raise ToolError("invalid_setting", "browser.backend is cdp, and browser.cdp_url is not set.", "Set it.")
    if browser.backend != "local" and browser.cdp_url:
        return CdpEndpoint(browser.cdp_url)
    extra = list(browser.extra_args)
    extra += [f"--lang={browser.locale}"] if browser.locale else []
    extra += ["--ignore-certificate-errors"] if browser.ignore_certificate_errors else []
    return LocalEndpoint(browser.executable, browser.headless, browser.user_data_dir, tuple(extra), browser.proxy)


def options(settings: Settings) -> Any:
    """``SupervisorOptions``, with the one redaction filter and the rules for addresses."""
    from watchkeeper.context.redact import redact
    from watchkeeper.supervisor import SupervisorOptions

    browser, policy = settings.browser, UrlPolicy(settings)
    return SupervisorOptions(
        dialog_policy=browser.dialog_policy,
        dialog_timeout_s=browser.dialog_timeout_s,
        bridge=browser.bridge,
        call_timeout_s=browser.call_timeout_s,
        idle_timeout_s=browser.idle_timeout_s or None,
        redact=redact,
        refuse_url=policy,
        egress=policy,
        refuse_file=lambda path, access: refusal(path, settings),
    )

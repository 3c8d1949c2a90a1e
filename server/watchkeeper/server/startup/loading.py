"""From the front to the live server, over stdio: everything is loaded in the order in which the first page needs it.

1. What starts a browser. Where a page is asked for already, and the settings that are given leave no doubt about the
   command line, the browser starts now: it takes as long as what follows. Never before it is asked for.
2. Beside it: the supervisor, the settings, the tools. From here on calls are answered (``early_calls.py``).
3. The SDK, as long to import as all the rest; so calls that have come go first, for a moment.
4. The live server takes over what the front has read.

Rules: imports nothing of the project but what 1 needs. The end of the input, a signal, settings that are wrong and an
SDK that cannot be loaded end what was started, and the browser that nobody took as well.
"""

import argparse
import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from anyio import Event, move_on_after

from watchkeeper.supervisor.backends.endpoint import LocalEndpoint
from watchkeeper.supervisor.cancelling import cancel_once, end_task
from watchkeeper.supervisor.egress import UNDECIDED
from watchkeeper.supervisor.starting import Started, abandon
from watchkeeper.supervisor.starting import start as start_browser

from ..daemon_thread import in_daemon_thread, outcome_of
from .boot import NAVIGATE, Front, end_on_signals, given, settle

if TYPE_CHECKING:
    from ..settings import Settings
    from .early_calls import EarlyCalls

THREAD = "watchkeeper-load"
ENDING = (signal.SIGTERM, signal.SIGINT)
CALLS_FIRST_S = 1.5
"""How long the SDK waits for calls that run."""
LAUNCH_TIMEOUT_S = 30.0
BROWSER_FIRST_S = 0.03
"""For so long nothing is imported beside a browser that is being started; from then on it works by itself."""
LAUNCH = frozenset({"browser.executable", "browser.headless"})
"""Settings that shape the launch, and are understood here."""
NO_LAUNCH = frozenset(
    {
        "browser.bridge",
        "browser.call_timeout_s",
        "browser.dialog_policy",
        "browser.dialog_timeout_s",
        "browser.idle_timeout_s",
        "browser.max_tasks",
    }
)
"""Settings of the browser that shape no launch."""
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def serve(front: Front, parsed: argparse.Namespace, options: Mapping[str, str]) -> int:
    """Load the server and serve. Gives the exit status."""
    try:
        outcome = asyncio.run(_Loading(front, parsed, options).run())
    except Exception as error:  # noqa: BLE001 - raised again where nobody expects it
        from ..commands.run import failed

        return failed(error)
    finally:
        end_on_signals()
    return outcome if isinstance(outcome, int) else front.refuse_for_ever(outcome)


def plain_endpoint(settings: Mapping[str, str]) -> LocalEndpoint | None:
    """The endpoint that the server will make of the settings that are given, where that is plain to see."""
    of_browser = {name for name in settings if name.startswith("browser.")}
    headless = settings.get("browser.headless")
    if of_browser - LAUNCH - NO_LAUNCH or (headless is not None and headless not in BOOLEANS):
        return None
    return LocalEndpoint(settings.get("browser.executable"), None if headless is None else BOOLEANS[headless])


class _Loading:
    def __init__(self, front: Front, parsed: argparse.Namespace, options: Mapping[str, str]) -> None:
        self._front = front
        self._parsed = parsed
        self._options = options
        self._endpoint = plain_endpoint(given(options, os.environ))
        self._starting: asyncio.Task[Started] | None = None
        self._calls: EarlyCalls | None = None
        self._over = asyncio.Event()

    async def run(self) -> int | BaseException:
        """The exit status, or why the SDK could not be loaded."""
        loop, this = asyncio.get_running_loop(), asyncio.current_task()
        assert this is not None
        for number in ENDING:
            loop.add_signal_handler(number, cancel_once, this)

        def changed() -> None:
            loop.call_soon_threadsafe(self._look)

        self._front.on_change(changed)
        self._look()
        try:
            if self._starting is not None:
                await asyncio.wait([self._starting], timeout=BROWSER_FIRST_S)
            settings = await outcome_of(lambda: _settings(self._parsed, self._options), THREAD)
            if isinstance(settings, SystemExit):
                return settings.code if isinstance(settings.code, int) else 1
            if isinstance(settings, BaseException):
                return settings
            return await self._serve(settings)
        except asyncio.CancelledError:
            return 0
        finally:
            self._endpoint = None  # nothing is started any more
            for number in ENDING:
                loop.add_signal_handler(number, lambda: None)  # it is being done
            if self._starting is not None:
                await abandon(self._starting)
            for number in ENDING:
                # Before the loop closes what its handlers write to: any thread may be the one that gets the signal.
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)

    def _look(self) -> None:
        """The front has changed."""
        if self._front.over:
            self._over.set()
        if self._calls is not None:
            self._calls.look()
        elif self._endpoint is not None and self._starting is None and self._page_is_wanted():
            starting = start_browser(self._endpoint, timeout=LAUNCH_TIMEOUT_S, egress=UNDECIDED)
            self._starting = asyncio.create_task(starting, name="watchkeeper-first-browser")

    def _page_is_wanted(self) -> bool:
        return any(call.tool == NAVIGATE for call in self._front.calls)

    async def _serve(self, settings: "Settings") -> int | BaseException:
        from ..lifetime import serve_until_ended
        from .early_calls import EarlyCalls, JoiningDispatcher

        dispatcher = JoiningDispatcher(settings)
        await asyncio.to_thread(dispatcher.prepare)
        calls = EarlyCalls(self._front, dispatcher)
        outcome: int | BaseException = 0
        watching: asyncio.Future[Callable[[], Any]] = asyncio.get_running_loop().create_future()

        async def sdk() -> Any:
            with move_on_after(CALLS_FIRST_S):
                await calls.idle()
            await dispatcher.tasks.end_expected()  # no call has taken it
            return await outcome_of(_live, THREAD)

        async def serving(stop: Event) -> None:
            nonlocal outcome
            if self._starting is not None and self._endpoint is not None:
                starting, self._starting = self._starting, None
                await dispatcher.tasks.expect(self._endpoint, starting)
            self._calls = calls
            self._look()
            loading = asyncio.create_task(sdk(), name="watchkeeper-load")
            ends = [asyncio.create_task(stop.wait()), asyncio.create_task(self._over.wait())]
            try:
                await asyncio.wait([loading, *ends], return_when=asyncio.FIRST_COMPLETED)
                if stop.is_set():
                    await calls.idle()
                if stop.is_set() or self._over.is_set():
                    return
                live = await loading
            finally:
                for task in (loading, *ends):
                    await end_task(task)
            if isinstance(live, BaseException):
                outcome = live
                return
            make_server, serve_stdio = live
            server = make_server(dispatcher)
            watching.set_result(server.offer.watch)
            settle()
            handover = await in_daemon_thread(self._front.stop, "watchkeeper-front-stop")
            limit = settings.server.max_message_mb << 20
            await serve_stdio(server, stop, max_message_bytes=limit, handover=handover)

        async def watch() -> None:
            look = await watching
            await outcome_of(_page, THREAD)
            await look()

        await serve_until_ended(dispatcher, serving, watch)
        return outcome


def _settings(parsed: argparse.Namespace, options: Mapping[str, str]) -> "Settings":
    """The settings, with everything imported that opening a page needs. Raises SystemExit where they are wrong."""
    import watchkeeper.supervisor.registry  # noqa: F401 - the point is that it is there afterwards

    from .. import lifetime  # noqa: F401
    from ..commands.run import prepared
    from . import early_calls  # noqa: F401

    return prepared(parsed, options)


def _live() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What makes the live server, and what serves it."""
    from ..protocol.app import make_server
    from ..transports.stdio import serve_stdio

    return make_server, serve_stdio


def _page() -> None:
    """What the calls after the first page need; nobody waits for it."""
    import watchkeeper.supervisor.page  # noqa: F401

"""The same registry and supervisors for hosts that know no event loop.

    with BlockingRegistry() as registry:
        supervisor = registry.get_or_start("task", LocalEndpoint())
        supervisor.navigate("http://127.0.0.1:8000/")
        supervisor.snapshot().pending_dialogs

Rules: one daemon thread runs one event loop for all tasks of a registry. Every method waits for its outcome and raises
what the asynchronous one raises; it may be called from any thread but that one, also from several at once.
``snapshot`` waits for nothing. An interrupted wait (Ctrl-C) cancels what it waited for. ``close`` ends browsers, loop
and thread; a process that ends without it still ends its browsers, for their pipe closes.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from .backends import Endpoint
from .core.dialogs import DialogPolicy
from .core.view import View
from .dialog_answer import DialogAnswer
from .errors import ConnectionLost, InvalidArgument
from .navigation import Navigation
from .options import SupervisorOptions
from .registry import SupervisorRegistry
from .supervisor import Supervisor

T = TypeVar("T")
JOIN_TIMEOUT_S = 10.0


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="watchkeeper", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def run(self, what: Coroutine[Any, Any, T]) -> T:
        """Run to its end and give its outcome."""
        if threading.current_thread() is self._thread:
            what.close()
            raise InvalidArgument(
                "A blocking call was made from the thread that would have to carry it out.",
                "Conditions of wait_for only look at the view; act after it returned.",
            )
        if self._loop.is_closed():
            what.close()
            raise ConnectionLost("The registry was closed.", "Make a new BlockingRegistry.")
        future = asyncio.run_coroutine_threadsafe(what, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(JOIN_TIMEOUT_S)
        if not self._thread.is_alive():
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


class BlockingSupervisor:
    """``Supervisor``, waiting. Its methods are described there."""

    def __init__(self, supervisor: Supervisor, loop: _Loop) -> None:
        self._supervisor = supervisor
        self._loop = loop

    @property
    def task_id(self) -> str:
        return self._supervisor.task_id

    @property
    def endpoint(self) -> Endpoint:
        return self._supervisor.endpoint

    @property
    def lost(self) -> str | None:
        return self._supervisor.lost

    @property
    def notice(self) -> str:
        return self._supervisor.notice

    def snapshot(self) -> View:
        return self._supervisor.snapshot()

    def wait_for(self, condition: Callable[[View], T | None], timeout: float) -> T:
        """``condition`` is called in the thread of the loop, with every new view."""
        return self._loop.run(self._supervisor.wait_for(condition, timeout))

    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        frame_id: str | None = None,
        target_id: str | None = None,
        session_id: str | None = None,
        timeout: float | None = None,
    ) -> Mapping[str, Any]:
        called = self._supervisor.call(
            method, params, frame_id=frame_id, target_id=target_id, session_id=session_id, timeout=timeout
        )
        return self._loop.run(called)

    def evaluate(
        self,
        expression: str,
        *,
        frame_id: str | None = None,
        await_promise: bool = True,
        timeout: float | None = None,
    ) -> Any:
        evaluated = self._supervisor.evaluate(
            expression, frame_id=frame_id, await_promise=await_promise, timeout=timeout
        )
        return self._loop.run(evaluated)

    def navigate(self, url: str, *, timeout: float | None = None) -> Navigation:
        return self._loop.run(self._supervisor.navigate(url, timeout=timeout))

    def answer_dialog(
        self, action: Literal["accept", "dismiss"], prompt_text: str | None = None, dialog_id: str | None = None
    ) -> DialogAnswer:
        return self._loop.run(self._supervisor.answer_dialog(action, prompt_text, dialog_id))

    def open_tab(self, url: str = "about:blank") -> str:
        return self._loop.run(self._supervisor.open_tab(url))

    def follow_tab(self, target_id: str) -> None:
        self._loop.run(self._supervisor.follow_tab(target_id))

    def select_tab(self, name: str) -> None:
        async def select() -> None:
            self._supervisor.select_tab(name)

        self._loop.run(select())

    def close_tab(self, name: str | None = None) -> str:
        return self._loop.run(self._supervisor.close_tab(name))


class BlockingRegistry:
    """``SupervisorRegistry``, waiting. Leaving the ``with`` block closes it."""

    def __init__(self, *, options: SupervisorOptions | None = None) -> None:
        self._loop = _Loop()
        self._registry = SupervisorRegistry(options=options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get_or_start(
        self, task_id: str, endpoint: Endpoint, *, dialog_policy: DialogPolicy | None = None
    ) -> BlockingSupervisor:
        started = self._registry.get_or_start(task_id, endpoint, dialog_policy=dialog_policy)
        return BlockingSupervisor(self._loop.run(started), self._loop)

    def get(self, task_id: str) -> BlockingSupervisor | None:
        found = self._registry.get(task_id)
        return None if found is None else BlockingSupervisor(found, self._loop)

    def stop(self, task_id: str) -> bool:
        return self._loop.run(self._registry.stop(task_id))

    def stop_all(self) -> None:
        self._loop.run(self._registry.stop_all())

    def close(self) -> None:
        """End every task, the loop and its thread. Bounded, idempotent."""
        try:
            self.stop_all()
        except ConnectionLost:
            return  # closed before
        finally:
            self._loop.close()

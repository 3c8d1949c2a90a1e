"""What the page needs of a supervisor: to send commands, and to know what is open.

Rules: nothing in ``page`` uses more of a supervisor than this.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from ..core.inputs import Event
from ..core.view import View

T = TypeVar("T")


class PagePort(Protocol):
    """``Supervisor`` is one; its docstrings say what each method raises."""

    def snapshot(self) -> View: ...

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        frame_id: str | None = None,
        target_id: str | None = None,
        session_id: str | None = None,
        timeout: float | None = None,
    ) -> Mapping[str, Any]: ...

    async def evaluate(
        self, expression: str, *, frame_id: str | None = None, await_promise: bool = True, timeout: float | None = None
    ) -> Any: ...

    async def wait_for(self, condition: Callable[[View], T | None], timeout: float) -> T: ...

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]: ...

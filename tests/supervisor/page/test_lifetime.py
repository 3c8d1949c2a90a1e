"""What the page remembers of a task ends with the task's supervisor."""

import gc
import weakref
from typing import Any, cast

import pytest

from watchkeeper.supervisor.page.downloads import downloads_of
from watchkeeper.supervisor.page.network import network_log
from watchkeeper.supervisor.page.port import PagePort
from watchkeeper.supervisor.page.state import state_of

pytestmark = pytest.mark.anyio


class Port:
    """A supervisor that is only listened to."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []

    def listen(self, listener: Any) -> Any:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)


async def test_states_logs_and_downloads_do_not_outlive_their_supervisor() -> None:
    port = Port()
    kept = [weakref.ref(port)]
    for make in (state_of, network_log, downloads_of):
        made = make(cast(PagePort, port))
        assert make(cast(PagePort, port)) is made
        kept.append(weakref.ref(made))
    del port, made
    gc.collect()
    assert [reference() for reference in kept] == [None] * 4

"""Names to addresses: off the event loop, with time limits, remembered for a moment.

Rules: looked up by the system, so hosts files and search domains count as for everybody else. A slow name server holds
up nobody but those who ask for that name. Remembering is safe because addresses are checked at every connection.
"""

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from .policy import Address

REMEMBERED_S = 30.0
REMEMBERED = 1_000
THREADS = 16
Lookup = Callable[[str], tuple[str, ...]]


def system_lookup(host: str) -> tuple[str, ...]:
    """The addresses of a name in the system's order. Raises OSError (``socket.gaierror``)."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class Resolver:
    """``lookup`` and ``clock`` are for tests."""

    def __init__(self, lookup: Lookup = system_lookup, clock: Callable[[], float] = time.monotonic) -> None:
        self._lookup = lookup
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, tuple[Address, ...]]] = OrderedDict()
        self._asking: dict[str, asyncio.Future[tuple[str, ...]]] = {}
        self._threads = ThreadPoolExecutor(THREADS, "watchkeeper-dns")

    async def addresses(self, host: str) -> tuple[Address, ...]:
        """Raises OSError where there are none."""
        try:
            return (ip_address(host),)
        except ValueError:
            pass
        known = self._known.get(host)
        if known is not None and self._clock() - known[0] < REMEMBERED_S:
            return known[1]
        asking = self._asking.get(host)
        if asking is None:
            asking = asyncio.get_running_loop().run_in_executor(self._threads, self._lookup, host)
            self._asking[host] = asking
            asking.add_done_callback(lambda _: self._asking.pop(host, None))
        texts = await asyncio.shield(asking)
        found = tuple(ip_address(text.partition("%")[0]) for text in texts)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        self._known[host] = (self._clock(), found)
        self._known.move_to_end(host)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found

    def close(self) -> None:
        """Nothing is waited for: a thread that asks a dead name server ends when that gives up."""
        self._threads.shutdown(wait=False, cancel_futures=True)

"""What a task's browser must not reach, held where commands leave and events arrive.

Rules: a raw command opens no address and names no file that the tools would refuse. A frame that arrives at a refused
address by itself (a redirect, a script, a popup, history) is sent to about:blank. Nothing of this is silent: refused
commands raise, and what pages tried stands in the console, each thing once in a while.

In browsers that we start the gate (``egress``) has refused the connection already; elsewhere this is all there is.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from .core import fields
from .core.commands import Send
from .core.inputs import Event
from .core.methods import NAMES_FILES, OPENS_URLS, SETS_DOWNLOADS
from .egress.policy import Outcome
from .errors import FileRefused, UrlRefused
from .options import SupervisorOptions

AGAIN_S = 30.0
REMEMBERED = 500
RECENT = 20
URL_SHOWN = 200
_INNOCENT = ("about:", "data:", "chrome-error:")
"""What browsers show of their own accord, and pages that came with their text."""


class Boundary:
    """``say`` puts a line into the console: level, text, address."""

    def __init__(
        self,
        options: SupervisorOptions,
        say: Callable[[str, str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._say = say
        self._clock = clock
        self._said: dict[tuple[str, ...], float] = {}
        self._trespasses: deque[tuple[float, str, str]] = deque(maxlen=RECENT)

    def check_url(self, url: str) -> None:
        """Raises UrlRefused."""
        reason = self._options.refuse_url(url)
        if reason is not None:
            raise UrlRefused(reason, "The address is not allowed here; see the browser.* settings.")

    def check_call(self, method: str, params: Mapping[str, Any]) -> None:
        """Raises UrlRefused, FileRefused."""
        for path in OPENS_URLS.get(method, ()):
            for url in _values(params, path.split(".")):
                self.check_url(str(url))
        use = NAMES_FILES.get(method)
        if use is not None:
            if method in SETS_DOWNLOADS and params.get("behavior") != "deny" and not params.get(use.parameter):
                raise FileRefused("Downloads need a folder (downloadPath).", "browser_files saves downloads.")
            for name in _values(params, use.parameter.split(".")):
                reason = self._options.refuse_file(str(name), use.access)
                if reason is not None:
                    raise FileRefused(reason, "server.allowed_dirs says which folders may be used. Nothing was done.")

    def check_history(self, history: Mapping[str, Any], entry_id: Any) -> None:
        """Before a tab goes back or forward. Raises UrlRefused."""
        for entry in fields.items(history, "entries"):
            if entry.get("id") == entry_id:
                self.check_url(fields.text(entry, "url"))

    def trespass(self, event: Event, session_of: Callable[[str], str | None]) -> Send | None:
        """What sends a frame away, when this event says that it came to a refused address.

        ``session_of`` gives the session of a target. A popup may have been there before we could hear of its frames;
        then what is said of it as a target counts.
        """
        match event.method:
            case "Page.frameNavigated":
                frame, session_id = fields.mapping(event.params, "frame"), event.session_id
                frame_id, url = fields.text(frame, "id"), fields.text(frame, "url")
            case "Target.attachedToTarget" | "Target.targetInfoChanged":
                info = fields.mapping(event.params, "targetInfo")
                frame_id, url = fields.text(info, "targetId"), fields.text(info, "url")
                session_id = session_of(frame_id)
            case _:
                return None
        reason = self._refusal(url)
        if reason is None or session_id is None:
            return None
        self._once("error", f"The page went to an address that is refused, and was sent to about:blank. {reason}", url)
        self._trespasses.append((self._clock(), frame_id, f"The address led to {url[:URL_SHOWN]}, refused. {reason}"))
        return Send(session_id, "Page.navigate", {"url": "about:blank", "frameId": frame_id})

    def check_arrival(self, frame_id: str, since: float) -> None:
        """Whether a frame came to a refused address since then (monotonic seconds). Raises UrlRefused."""
        for at, trespasser, message in self._trespasses:
            if trespasser == frame_id and at >= since:
                raise UrlRefused(f"{message} The tab was sent to about:blank.", _HINT)

    def not_connected(self, outcome: Outcome) -> None:
        """The gate refused a connection, or it failed: the browser's own message says less."""
        where = f"{outcome.host}:{outcome.port}"
        if outcome.kind == "refused":
            self._once("error", f"Refused: a connection to {where}. {outcome.reason}", "")
        else:
            self._once("warning", f"No connection to {where}: {outcome.reason} ({outcome.net_error}).", "")

    def _refusal(self, url: str) -> str | None:
        return None if not url or url.startswith(_INNOCENT) else self._options.refuse_url(url)

    def _once(self, level: str, text: str, url: str) -> None:
        """A page that tries in a loop must not push everything else out of the console."""
        key = (text, urlsplit(url).netloc if "://" in url else url[:URL_SHOWN])
        now = self._clock()
        if now - self._said.get(key, -AGAIN_S) < AGAIN_S:
            return
        if len(self._said) >= REMEMBERED:
            self._said.clear()
        self._said[key] = now
        self._say(level, text, url)


_HINT = "The settings browser.allowed_hosts, browser.blocked_hosts and browser.allow_private_network decide."


def refused(outcome: Outcome, url: str) -> UrlRefused:
    """The error for a navigation whose connection the gate refused."""
    try:
        same = urlsplit(url).hostname == outcome.host
    except ValueError:
        same = False
    led = "" if same else f"{url[:URL_SHOWN]} led to {outcome.host}:{outcome.port}, which is refused. "
    return UrlRefused(f"{led}{outcome.reason}", _HINT)


def _values(params: Any, path: list[str]) -> Iterator[Any]:
    """What stands at a dotted path, through lists."""
    if isinstance(params, list):
        for item in params:
            yield from _values(item, path)
    elif not path:
        if params is not None:
            yield params
    elif isinstance(params, Mapping) and path[0] in params:
        yield from _values(params[path[0]], path[1:])

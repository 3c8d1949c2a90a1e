"""Endpoints: which browser the person wants, in the person's own terms.

Rules: an endpoint is an identity, what was configured and not what it resolves to, so that a renewed signature is the
same endpoint. ``str`` and ``repr`` show no secret.
"""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ..address import shown
from ..errors import InvalidArgument

BROWSERBASE_API = "https://api.browserbase.com"


@dataclass(frozen=True, slots=True)
class LocalEndpoint:
    """A browser that we start on this machine, and end.

    ``executable`` None: the first that is found. ``headless`` None: headless where there is no display.
    ``user_data_dir`` None: a temporary profile; otherwise a folder that is kept (and never deleted by us).
    ``proxy``: ``[scheme://]host:port`` as Chromium's ``--proxy-server`` takes it.
    """

    executable: str | None = None
    headless: bool | None = None
    user_data_dir: str | None = None
    extra_args: tuple[str, ...] = field(default=(), repr=False)
    proxy: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        profile = f" with the profile {self.user_data_dir}" if self.user_data_dir else ""
        return f"local browser {self.executable or '(found)'}{profile}"


@dataclass(frozen=True, slots=True)
class CdpEndpoint:
    """A browser that somebody else runs: ``http://``, ``https://``, ``ws://`` or ``wss://``.

    Raises: InvalidArgument when the address cannot be one.
    """

    url: str = field(repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            valid = parts.scheme in ("http", "https", "ws", "wss") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise InvalidArgument(
                f"The CDP address ({shown(self.url)}) cannot be used.",
                "Give browser.cdp_url as http://host:port, https://…, ws://… or wss://….",
            )

    def __str__(self) -> str:
        return shown(self.url)


@dataclass(frozen=True, slots=True)
class BrowserbaseEndpoint:
    """A session at Browserbase, created when we connect and released when we close.

    The key is not part of it: it comes from the environment (``BROWSERBASE_API_KEY``), and so does the project where
    none is given (``BROWSERBASE_PROJECT_ID``). ``keep_alive``: the session outlives a lost connection (a paid feature
    of theirs). ``timeout_s``: when the service ends the session by itself; None is the project's own setting.
    """

    project_id: str | None = None
    keep_alive: bool = False
    timeout_s: int | None = None
    api_url: str = BROWSERBASE_API

    def __str__(self) -> str:
        return f"Browserbase ({shown(self.api_url)})"


Endpoint = LocalEndpoint | CdpEndpoint | BrowserbaseEndpoint

"""One small HTTP request, without waiting in the event loop.

Rules: bounded in time and size. Redirects are not followed: what is sent may be secret. Loopback goes past proxies.
"""

import base64
import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import anyio
from anyio import to_thread

from ..address import is_loopback, shown
from ..errors import EndpointUnreachable

BODY_CAP = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


async def request(
    url: str, *, hint: str, timeout: float, headers: Mapping[str, str] | None = None, body: bytes | None = None
) -> Reply:
    """GET, or POST when there is a body. A user and password in the address become a header.

    Raises: EndpointUnreachable (with ``hint``) when there is no HTTP answer within ``timeout`` seconds.
    """
    place = shown(url)
    try:
        with anyio.fail_after(timeout):
            return await to_thread.run_sync(_request, url, dict(headers or {}), body, timeout, abandon_on_cancel=True)
    except TimeoutError:
        raise EndpointUnreachable(f"{place} did not answer within {timeout:g} s.", hint) from None
    except urllib.error.URLError as error:
        raise EndpointUnreachable(_refused(place, error.reason), hint) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise EndpointUnreachable(_refused(place, error), hint) from None


def _request(url: str, headers: dict[str, str], body: bytes | None, timeout: float) -> Reply:
    parts = urlsplit(url)
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(credentials.encode()).decode()
        url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if is_loopback(parts.hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    deadline = time.monotonic() + timeout
    try:
        response = opener.open(urllib.request.Request(url, body, headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        received = bytearray()
        while chunk := response.read1(65536):
            received += chunk
            if len(received) > BODY_CAP or time.monotonic() > deadline:
                raise http.client.HTTPException("the answer is too long, or comes too slowly")
        return Reply(response.status, bytes(received))


def _refused(place: str, reason: object) -> str:
    if isinstance(reason, ConnectionRefusedError):
        return f"Nothing listens at {place}."
    if isinstance(reason, TimeoutError):
        return f"{place} did not answer in time."
    if isinstance(reason, ssl.SSLError):
        return f"{place}: no secure connection ({reason.reason or 'TLS failed'})."
    if isinstance(reason, OSError):
        return f"{place} cannot be reached ({reason.strerror or type(reason).__name__})."
    return f"{place} answers, but not with HTTP that we understand."

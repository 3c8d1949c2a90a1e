"""Sessions at Browserbase, a service that runs browsers.

Rules: the key comes from the environment and goes to the service alone. A session that we created is released when we
close, also when connecting to it fails. Neither key nor signed address appears in a message.

Source: https://docs.browserbase.com/reference/api (create a session, update a session)
"""

import asyncio
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlsplit

from anyio import CancelScope

from ..address import shown
from ..errors import EndpointUnreachable, SupervisorError, TransportClosed
from ..transport import Transport, WebSocketTransport
from . import http
from .connected import Connected, ask_version_of
from .endpoint import BrowserbaseEndpoint

KEY = "BROWSERBASE_API_KEY"
PROJECT = "BROWSERBASE_PROJECT_ID"
RELEASE_WITHIN_S = 5.0
HINT = "Check the network, and https://status.browserbase.com."


class BrowserbaseSession(Connected):
    """``session_id`` is how the service's dashboard names it."""

    owns_browser = True

    def __init__(self, transport: Transport, product: str, session_id: str, api: "Api") -> None:
        super().__init__(transport, product)
        self.session_id = session_id
        self.release_error: str | None = None
        self._api = api
        self._released = False

    async def close(self) -> None:
        with CancelScope(shield=True):
            await self.transport.close()
            if self._released:
                return
            self._released = True
            try:
                await self._api.release(self.session_id)
            except SupervisorError as error:
                # Not raised: what is being closed cannot be helped by it. The service ends the session in its own time.
                self.release_error = error.message


async def connect_browserbase(
    endpoint: BrowserbaseEndpoint, timeout: float, environment: Mapping[str, str] = os.environ
) -> BrowserbaseSession:
    """Create a session and connect to it.

    Raises: EndpointUnreachable.
    """
    deadline = time.monotonic() + timeout
    key = environment.get(KEY, "").strip()
    if not key:
        raise EndpointUnreachable(
            "Browserbase needs a key, and none is set.", f"Set the environment variable {KEY} where the server starts."
        )
    api = Api(endpoint, key, endpoint.project_id or environment.get(PROJECT) or None)
    session_id, connect_url = await _created(api, timeout)
    transport: Transport | None = None
    try:
        transport = await WebSocketTransport.connect(connect_url, max(0.1, deadline - time.monotonic()))
        product = await ask_version_of(transport, str(endpoint), max(0.1, deadline - time.monotonic()))
        return BrowserbaseSession(transport, product, session_id, api)
    except BaseException:
        await BrowserbaseSession(transport or _NoTransport(), "", session_id, api).close()
        raise


async def _created(api: "Api", timeout: float) -> tuple[str, str]:
    """Create a session. Cancelled meanwhile, it is released as soon as its name is known: sessions cost money."""
    creating = asyncio.create_task(api.create(timeout))
    try:
        return await asyncio.shield(creating)
    except asyncio.CancelledError:
        with CancelScope(shield=True), suppress(SupervisorError):
            await asyncio.wait([creating], timeout=RELEASE_WITHIN_S)
            if creating.done():
                await api.release(creating.result()[0])
        creating.cancel()
        raise


class Api:
    """The two calls that we make."""

    def __init__(self, endpoint: BrowserbaseEndpoint, key: str, project: str | None) -> None:
        self._endpoint = endpoint
        self._key = key
        self._project = project

    async def create(self, timeout: float) -> tuple[str, str]:
        """The session's id, and the address to connect to (which is secret)."""
        wanted: dict[str, Any] = {}
        if self._endpoint.keep_alive:
            wanted["keepAlive"] = True
        if self._endpoint.timeout_s is not None:
            wanted["timeout"] = self._endpoint.timeout_s
        created = await self._post("/v1/sessions", wanted, timeout)
        session_id, url = created.get("id"), created.get("connectUrl")
        usable = isinstance(url, str) and urlsplit(url).scheme in ("ws", "wss")
        if not isinstance(session_id, str) or not isinstance(url, str) or not usable:
            raise EndpointUnreachable(
                f"{self._endpoint} created a session, but its answer names no address to connect to.", HINT
            )
        return session_id, url

    async def release(self, session_id: str) -> None:
        wanted = {"status": "REQUEST_RELEASE"}
        await self._post(f"/v1/sessions/{quote(session_id, safe='')}", wanted, RELEASE_WITHIN_S)

    async def _post(self, path: str, wanted: dict[str, Any], timeout: float) -> dict[str, Any]:
        if self._project is not None:
            wanted = {"projectId": self._project, **wanted}
        reply = await http.request(
            self._endpoint.api_url.rstrip("/") + path,
            hint=HINT,
            timeout=timeout,
            headers={"X-BB-API-Key": self._key, "Content-Type": "application/json", "Accept": "application/json"},
            body=json.dumps(wanted).encode(),
        )
        try:
            answer = json.loads(reply.body)
        except ValueError:
            answer = None
        if reply.status not in (200, 201) or not isinstance(answer, dict):
            raise self._refused(reply.status, answer)
        return answer

    def _refused(self, status: int, answer: object) -> EndpointUnreachable:
        said = answer.get("message") if isinstance(answer, dict) else None
        because = f": {said[:200]}" if isinstance(said, str) and self._key not in said else ""
        hint = {
            400: f"Check the project id ({PROJECT}).",
            401: f"Check the key in {KEY}.",
            402: "The plan's allowance is used up; see the service's dashboard.",
            403: f"Check that the key in {KEY} belongs to the project in {PROJECT}.",
            429: "Too many sessions at once for the plan: close one (browser_close), or wait.",
        }.get(status, HINT)
        return EndpointUnreachable(
            f"Browserbase at {shown(self._endpoint.api_url)} refused (HTTP status {status}{because}).",
            hint,
            status=status,
        )


class _NoTransport:
    """Stands for a connection that was never opened."""

    async def receive(self) -> bytes:
        raise TransportClosed("never opened")

    def send(self, message: str) -> None:
        raise TransportClosed("never opened")

    async def close(self) -> None:
        return

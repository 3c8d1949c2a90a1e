"""For those who run the server over HTTP: ``GET /health`` for machines that watch it, ``GET /status`` for people.

Rules: ``/health`` needs no token and says one word, so that containers and load balancers can ask it: ``ok``, or with
503 ``ending`` once no new calls are taken. It is asked before requests are counted, for a server that is busy is not
ill. ``/status`` is what the resource ``watchkeeper://status`` is, behind the same door as ``/mcp``. Host and Origin are
checked before both.
"""

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .. import render
from ..dispatch import Dispatcher
from ..observability.status import status
from ..protocol.principal import principal

HEALTH = "/health"
STATUS = "/status"
NOT_KEPT = {"Cache-Control": "no-store"}


class Health:
    """Middleware that answers ``/health``; everything else goes on."""

    def __init__(self, app: ASGIApp, dispatcher: Dispatcher) -> None:
        self.app = app
        self._dispatcher = dispatcher

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != HEALTH:
            await self.app(scope, receive, send)
            return
        if scope["method"] not in ("GET", "HEAD"):
            await Response(status_code=405, headers={"Allow": "GET, HEAD"})(scope, receive, send)
            return
        ending = self._dispatcher.draining
        answer = JSONResponse({"status": "ending" if ending else "ok"}, 503 if ending else 200, NOT_KEPT)
        await answer(scope, receive, send)


def status_endpoint(dispatcher: Dispatcher) -> ASGIApp:
    """To be guarded as ``/mcp`` is."""

    async def shown(scope: Scope, receive: Receive, send: Send) -> None:
        found = dispatcher.shown("", status(dispatcher, principal())).structured
        answer = Response(render.as_json(found), media_type="application/json", headers=NOT_KEPT)
        await answer(scope, receive, send)

    return shown

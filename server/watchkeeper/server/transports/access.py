"""Who may speak to the server over HTTP: bearer tokens, Host and Origin.

Rules: without tokens the server listens on loopback only. Tokens are compared in constant time, and all of them, so
that the time taken tells nothing. A request whose Host or Origin is not known is refused before anything else looks at
it, which is what keeps web pages out (DNS rebinding).

Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#security-warning
"""

import hashlib
import hmac
import re
import socket
from collections.abc import Mapping

from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import ToolError
from ..security.url_policy import is_loopback_host
from ..settings import ServerSettings

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
WILDCARDS = ("0.0.0.0", "::", "")
LEAST_TOKEN = 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")


def check_tokens(settings: ServerSettings) -> Mapping[str, str]:
    """Name -> token. Raises ToolError where the settings would let anybody in."""
    tokens = {name: token.get_secret_value() for name, token in settings.auth_tokens.items()}
    if not tokens and not is_loopback_host(settings.host):
        raise ToolError(
            "token_needed",
            f"The server does not listen on {settings.host} without tokens.",
            "Set server.auth_tokens (WATCHKEEPER_SERVER__AUTH_TOKENS__NAME=…), or server.host to 127.0.0.1.",
        )
    for name, token in tokens.items():
        if not _NAME.fullmatch(name):
            raise ToolError(
                "bad_token_name",
                f"{name[:80]!r} cannot name the holder of a token.",
                "Names in server.auth_tokens are letters, digits and . _ @ -, at most 64.",
            )
        if len(token) < LEAST_TOKEN:
            raise ToolError(
                "weak_token",
                f"The token of {name!r} in server.auth_tokens has fewer than {LEAST_TOKEN} characters.",
                'Make one: python -c "import secrets; print(secrets.token_urlsafe(32))".',
            )
    if len(set(tokens.values())) < len(tokens):
        raise ToolError("shared_token", "Two names in server.auth_tokens have the same token.", "Give each its own.")
    return tokens


class Tokens:
    """A token verifier as the SDK wants it: the holder's name is the client id."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._digests = {name: _digest(token) for name, token in tokens.items()}

    async def verify_token(self, token: str) -> AccessToken | None:
        given, holder = _digest(token), None
        for name, digest in self._digests.items():
            if hmac.compare_digest(digest, given):
                holder = name
        return AccessToken(token=token, client_id=holder, scopes=[]) if holder else None


def security(settings: ServerSettings) -> TransportSecuritySettings:
    """The Host and Origin headers that are accepted."""
    names = {*LOOPBACK} if is_loopback_host(settings.host) else set()
    if settings.host in WILDCARDS:
        names |= {*LOOPBACK, *_own_names()}
    else:
        names.add(_in_url(settings.host))
    names |= set(settings.allowed_hosts)
    origins = [f"http://{name}{port}" for name in LOOPBACK for port in ("", ":*")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{name}{port}" for name in sorted(names) for port in ("", ":*")],
        allowed_origins=[*origins, *settings.allowed_origins],
    )


class KnownHostsOnly:
    """Refuses requests by their Host and Origin."""

    def __init__(self, app: ASGIApp, settings: TransportSecuritySettings) -> None:
        self.app = app
        self._check = TransportSecurityMiddleware(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = await self._check.validate_request(Request(scope))
        if refusal is None:
            await self.app(scope, receive, send)
            return
        setting = "server.allowed_hosts" if refusal.status_code == 421 else "server.allowed_origins"
        which = "Host" if refusal.status_code == 421 else "Origin"
        await PlainTextResponse(
            f"This {which} header is not accepted; {setting} adds more.\n", status_code=refusal.status_code
        )(scope, receive, send)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _own_names() -> set[str]:
    name = socket.gethostname()
    try:
        numbers = {str(found[4][0]) for found in socket.getaddrinfo(name, None)}
    except OSError:
        numbers = set()
    return {name, *map(_in_url, numbers)}

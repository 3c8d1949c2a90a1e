"""Who a request comes from."""

from mcp.server.auth.middleware.auth_context import get_access_token


def principal() -> str:
    """The name in ``server.auth_tokens`` of whoever sent the request that is being handled; empty without tokens."""
    token = get_access_token()
    return token.client_id if token else ""

"""CDP JSON and what it means: messages in, messages out.

Rules: a message that is not a reply or an event decodes to None, never to an exception.

Source: https://chromedevtools.github.io/devtools-protocol/ (JSON-RPC 2.0 without its version field)
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import fields
from .inputs import Event


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to the command numbered ``id``. ``code`` and ``message`` are of the error, when there is one."""

    id: int
    result: Mapping[str, Any]
    is_error: bool = False
    code: int = 0
    message: str = ""


def decode(message: str | bytes) -> Event | Reply | None:
    """Read one message from the browser; None for what makes no sense."""
    try:
        body = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict):
        return None
    if "id" in body:
        number = body["id"]
        if not isinstance(number, int):
            return None
        if "error" in body:
            error = fields.mapping(body, "error")
            detail = fields.text(error, "data")
            said = fields.text(error, "message") or "unknown error"
            return Reply(number, {}, True, fields.integer(error, "code"), f"{said} ({detail})" if detail else said)
        return Reply(number, fields.mapping(body, "result"))
    method = body.get("method")
    if not isinstance(method, str):
        return None
    return Event(fields.text(body, "sessionId") or None, method, fields.mapping(body, "params"))


def encode(number: int, session_id: str | None, method: str, params: Mapping[str, Any]) -> str:
    """Write one command. Lone surrogates, which a page may hand us, are escaped: the text stays valid UTF-8."""
    body: dict[str, Any] = {"id": number, "method": method, "params": params}
    if session_id is not None:
        body["sessionId"] = session_id
    return json.dumps(body, separators=(",", ":"))

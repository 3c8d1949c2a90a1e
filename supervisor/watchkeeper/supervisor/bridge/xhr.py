"""The XHR bridge: the page sends a synchronous request to a host of ours that does not exist; ``Fetch`` holds it.

Rules: the host is https, for an http one would be blocked as mixed content before ``Fetch`` sees it. The request has a
nonce, so that a page cannot forge a dialog by requesting the host itself; such requests fail. The answer echoes the
request's ``Origin``, also ``null``. For engines whose debugger cannot hold a page.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Fetch/#event-requestPaused
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

from ..core import fields
from .functions import bridged_functions
from .question import Question, question

URL = "https://watchkeeper-dialog-bridge.invalid/"
PATTERNS = [{"urlPattern": f"{URL}*", "requestStage": "Request"}]
_ASK = """const {parse, stringify} = JSON;
  const Request = window.XMLHttpRequest;
  const {open, send} = Request.prototype;
  const responseText = Object.getOwnPropertyDescriptor(Request.prototype, 'responseText').get;
  const ask = (type, message, fallback) => {
    try {
      const request = new Request();
      apply(open, request, ['POST', '%(url)s', false]);
      const said = `[${stringify(type)},${stringify(message)},${stringify(fallback)},${stringify(location.href)}]`;
      apply(send, request, ['%(nonce)s' + said]);
      const {accept, prompt_text} = parse(apply(responseText, request, []));
      return {accept, text: prompt_text};
    } catch (refused) {
      return undefined;
    }
  };"""

_TELL = """const {stringify} = JSON, {sendBeacon} = navigator;
  const ask = (type, message, fallback) => {
    const said = `[${stringify(type)},${stringify(message)},${stringify(fallback)},${stringify(location.href)}]`;
    apply(sendBeacon, navigator, ['%(url)s', '%(nonce)s' + said]);
    return {accept: true};
  };"""


def script(nonce: str) -> str:
    """The injected script for pages of one supervisor. ``nonce``: letters and digits."""
    return bridged_functions(_ASK % {"url": URL, "nonce": nonce})


def telling(nonce: str) -> str:
    """``ask`` for a time at which no request can hold the page: it tells, and gives the answer "leave"."""
    return _TELL % {"url": URL, "nonce": nonce}


def is_bridge(params: Mapping[str, Any]) -> bool:
    """Whether a ``Fetch.requestPaused`` is for our host."""
    return fields.text(fields.mapping(params, "request"), "url").startswith(URL)


def read(params: Mapping[str, Any], nonce: str) -> Question | None:
    """The question in a ``Fetch.requestPaused``; None for a request that our script did not send."""
    body = fields.text(fields.mapping(params, "request"), "postData")
    if not nonce or not body.startswith(nonce):
        return None
    try:
        value = json.loads(body[len(nonce) :])
    except ValueError:
        return None
    return question(*value) if isinstance(value, list) and len(value) == 4 else None


def origin(params: Mapping[str, Any]) -> str:
    """The ``Origin`` of a request."""
    headers = fields.mapping(fields.mapping(params, "request"), "headers")
    return next((str(value) for name, value in headers.items() if name.lower() == "origin"), "null")


def answer(request_id: str, origin: str, accept: bool, text: str | None) -> dict[str, Any]:
    """Parameters of the ``Fetch.fulfillRequest`` that answers."""
    body = json.dumps({"accept": accept, "prompt_text": text or ""})
    return {
        "requestId": request_id,
        "responseCode": 200,
        "responseHeaders": [
            {"name": "Access-Control-Allow-Origin", "value": origin},
            {"name": "Content-Type", "value": "application/json"},
        ],
        "body": base64.b64encode(body.encode()).decode(),
    }

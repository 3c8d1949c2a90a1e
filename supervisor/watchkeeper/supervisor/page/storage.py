"""Cookies and local storage of a task: read, set, saved and loaded, so that a sign-in can be kept.

Rules: the saved form is the one that Playwright calls storage state, so files can be exchanged. Values are secrets:
they go to the caller and nowhere else. Local storage is read from the origins that are open, and given to others when
they are opened.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Storage/#method-getCookies
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..core import fields
from ..errors import InvalidArgument, SupervisorError
from .port import PagePort

_READ = "JSON.stringify([location.origin, Object.entries(localStorage)])"
_SEED = """(() => {
  try {
    for (const { name, value } of %s[location.origin] ?? []) {
      if (localStorage.getItem(name) === null) localStorage.setItem(name, value);
    }
  } catch {
    // no storage in this document
  }
})()"""
_SAME_SITE = frozenset({"Strict", "Lax", "None"})


async def cookies(port: PagePort, *, url: str = "") -> list[dict[str, Any]]:
    """Cookies of the task, or those that a URL would get."""
    if url:
        got = await port.call("Network.getCookies", {"urls": [url]})
    else:
        got = await port.call("Storage.getCookies")
    return [_cookie(cookie) for cookie in fields.items(got, "cookies")]


def _cookie(cookie: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": fields.text(cookie, "name"),
        "value": fields.text(cookie, "value"),
        "domain": fields.text(cookie, "domain"),
        "path": fields.text(cookie, "path"),
        "expires": cookie.get("expires", -1),
        "httpOnly": fields.flag(cookie, "httpOnly"),
        "secure": fields.flag(cookie, "secure"),
        "sameSite": fields.text(cookie, "sameSite") or "Lax",
    }


async def set_cookies(port: PagePort, given: Sequence[Mapping[str, Any]]) -> int:
    """Set cookies: each has ``name``, ``value`` and ``url`` or ``domain``. Gives how many.

    Raises: InvalidArgument, with the first that is wrong; then none is set.
    """
    made = []
    for number, cookie in enumerate(given, 1):
        if not fields.text(cookie, "name") or not (fields.text(cookie, "domain") or fields.text(cookie, "url")):
            raise InvalidArgument(f"Cookie {number} has no name, or neither domain nor url.", "Nothing was set.")
        if cookie.get("sameSite") not in (None, *_SAME_SITE):
            raise InvalidArgument(f"Cookie {number}: sameSite is Strict, Lax or None.", "Nothing was set.")
        kept = {key: cookie[key] for key in _COOKIE_KEYS if cookie.get(key) is not None}
        if kept.get("expires") == -1:
            del kept["expires"]
        made.append(kept)
    await port.call("Storage.setCookies", {"cookies": made})
    return len(made)


_COOKIE_KEYS = ("name", "value", "url", "domain", "path", "expires", "httpOnly", "secure", "sameSite")


async def clear_cookies(port: PagePort) -> None:
    await port.call("Storage.clearCookies")


async def save_state(port: PagePort) -> dict[str, Any]:
    """Cookies, and the local storage of every origin that is open."""
    origins: dict[str, Any] = {}
    for frame in port.snapshot().frames:
        if not frame.origin.startswith("http") or frame.origin in origins:
            continue
        try:
            origin, entries = json.loads(await port.evaluate(_READ, frame_id=frame.frame_id))
        except SupervisorError:
            continue  # a frame whose storage is closed to scripts has none that could be kept
        if entries:
            origins[origin] = [{"name": name, "value": value} for name, value in entries]
    listed = [{"origin": origin, "localStorage": items} for origin, items in origins.items()]
    return {"cookies": await cookies(port), "origins": listed}


async def load_state(port: PagePort, state: Mapping[str, Any]) -> tuple[int, int]:
    """Set what ``save_state`` gave: how many cookies, and for how many origins. Raises InvalidArgument."""
    given = state.get("cookies", [])
    if not isinstance(given, list) or not isinstance(state.get("origins", []), list):
        raise InvalidArgument("This is no storage state.", "It has lists called cookies and origins.")
    count = await set_cookies(port, given) if given else 0
    seeds: dict[str, list[dict[str, str]]] = {}
    for entry in fields.items(state, "origins"):
        items = [
            {"name": fields.text(item, "name"), "value": fields.text(item, "value")}
            for item in fields.items(entry, "localStorage")
        ]
        if items:
            seeds[fields.text(entry, "origin")] = items
    if seeds:
        script = _SEED % json.dumps(seeds)
        source = {"source": script, "runImmediately": True}
        for session in {frame.session_id for frame in port.snapshot().frames}:
            await port.call("Page.addScriptToEvaluateOnNewDocument", source, session_id=session)
    return count, len(seeds)

"""Browsers: which are found, and whether the one that settings choose can be used.

Rules: a browser is started or attached to as the server would do it, in a task of its own, and left in peace again.
"""

import time
from urllib.parse import urlsplit

import anyio

from ...errors import told
from ...settings import Settings
from .finding import Finding, Findings

LAUNCH_LIMIT_S = 60.0
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


def examined(settings: Settings, *, start: bool) -> Findings:
    from watchkeeper.supervisor.backends import find_browsers

    found = find_browsers()
    for browser in found:
        yield Finding("ok", "browser", f"browser found: {browser.kind}, {browser.path}")
    if not found:
        remedy = "Install Chrome or Chromium, or set browser.executable."
        yield Finding("note", "browser", "no browser was found in the usual places", remedy)
    if start:
        yield from _tried(settings)
    else:
        yield Finding("note", "browser", "no browser was started, as you asked")


def _tried(settings: Settings) -> Findings:
    from ...tasks import endpoint, options

    started = time.monotonic()
    try:
        where = endpoint(settings)
        product = anyio.run(_try, where, options(settings))
    except Exception as error:  # noqa: BLE001 - whatever keeps a browser from starting is a finding
        known = told(error)
        what = known.message if known else f"{type(error).__name__}: {error}"
        remedy = known.hint if known else ""
        yield Finding("wrong", "browser", f"a browser cannot be used: {what}", attached_remedy(settings) or remedy)
    else:
        took = time.monotonic() - started
        yield Finding("ok", "browser", f"{product}, from {where}: opened a page and answered in {took:.1f} s")


async def _try(where: object, options: object) -> str:
    from watchkeeper.supervisor import SupervisorRegistry

    registry = SupervisorRegistry(options=options)  # type: ignore[arg-type]
    try:
        with anyio.fail_after(LAUNCH_LIMIT_S):
            supervisor = await registry.get_or_start("doctor", where)  # type: ignore[arg-type]
            await supervisor.navigate("data:text/html,doctor")
            if await supervisor.evaluate("6 * 7") != 42:
                raise RuntimeError("the page computes wrongly")
            return supervisor.browser.product
    finally:
        with anyio.move_on_after(LAUNCH_LIMIT_S, shield=True):
            await registry.stop_all()


def attached_remedy(settings: Settings) -> str:
    """What to start a browser with that should be attached to on this machine, and does not answer; else empty.

    Chrome 136 and newer ignores the option with the profile folder that people browse with.
    Source: https://developer.chrome.com/blog/remote-debugging-port
    """
    url = settings.browser.cdp_url
    if not url or settings.browser.backend in ("local", "browserbase"):
        return ""
    try:
        parts = urlsplit(url)
        port = parts.port or 9222
    except ValueError:
        return ""
    if parts.hostname not in LOOPBACK:
        return ""
    return (
        f"Close the browser and start it with --remote-debugging-port={port} and a profile folder of its own, "
        '--user-data-dir="$HOME/.chrome-for-agents": Chrome 136 and newer ignores the port with the usual one. '
        f"http://127.0.0.1:{port}/json/version answers then."
    )

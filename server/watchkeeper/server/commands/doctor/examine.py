"""All findings, one after the other, for people or as JSON."""

import json
import platform
import sys
import textwrap
from collections.abc import Callable
from dataclasses import asdict

from ... import own_version
from ...settings import Settings
from . import browser, context, entries, folders, machine, network
from .finding import Finding, Findings

MARKS = {"ok": "ok   ", "note": "note ", "wrong": "WRONG"}
WIDTH = 79


def examine(settings: Settings, *, as_json: bool = False, with_browser: bool = True) -> int:
    """Print all findings; gives the exit status."""
    found = []
    for finding in findings(settings, with_browser=with_browser):
        found.append(finding)
        if not as_json:
            _print(finding)
    wrong = sum(finding.level == "wrong" for finding in found)
    if as_json:
        sys.stdout.write(json.dumps({"ok": not wrong, "findings": [asdict(f) for f in found]}, indent=2) + "\n")
    else:
        sys.stdout.write("\nEverything that is needed is there.\n" if not wrong else f"\n{wrong} to mend.\n")
    return int(wrong > 0)


def findings(settings: Settings, *, with_browser: bool = True) -> Findings:
    said = f"watchkeeper {own_version()}, Python {platform.python_version()}, {platform.system()}"
    yield Finding("ok", "version", said)
    subjects: list[Callable[[], Findings]] = [
        lambda: machine.examined(settings),
        lambda: browser.examined(settings, start=with_browser),
        lambda: network.examined(settings),
        lambda: context.examined(settings),
        lambda: folders.examined(settings),
        entries.examined,
    ]
    for examined in subjects:
        yield from examined()


def _print(finding: Finding) -> None:
    sys.stdout.write(_wrapped(finding.what, f"{MARKS[finding.level]} ", "      "))
    if finding.remedy:
        sys.stdout.write(_wrapped(finding.remedy, "      -> ", "         "))
    sys.stdout.flush()


def _wrapped(text: str, first: str, rest: str) -> str:
    """For a terminal in lines that fit; for a program each finding, and each remedy, is one line."""
    if not sys.stdout.isatty():
        return f"{first}{text}\n"
    filled = textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return f"{filled}\n"

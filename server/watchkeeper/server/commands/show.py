"""``watchkeeper config`` and ``watchkeeper engines``: what is set, and what could be chosen."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from ..settings import Setting, Settings, all_settings, shown
from ..settings_sources import Loaded

HIDDEN = "(hidden)"
WIDTH = 79


def show_config(loaded: Loaded, *, as_json: bool) -> int:
    """Every setting with value, source and help; secrets hidden."""
    if as_json:
        described = [
            {
                "name": s.name,
                "value": _plain(s, loaded),
                "source": loaded.source(s),
                "expects": s.expects,
                "help": s.help,
            }
            for s in all_settings()
        ]
        _print(json.dumps(described, indent=2, ensure_ascii=False))
        return 0
    section = ""
    for setting in all_settings():
        head, _, _ = setting.name.rpartition(".")
        if head != section:
            _print(f"\n{head}" if section else head)
            section = head
        _print(f"  {setting.name} = {_shown(setting, loaded)}   [{loaded.source(setting)}]")
        about = (
            f"{setting.help} Expects {setting.expects}." if setting.kind is not str or setting.choices else setting.help
        )
        _print(textwrap.fill(about, WIDTH, initial_indent="      ", subsequent_indent="      "))
    return 0


def show_engines(settings: Settings) -> int:
    """The engines that ``context.engine`` can name; imports none of them."""
    from watchkeeper.context.discovery import list_engines

    for engine in list_engines([Path(folder) for folder in settings.context.plugin_dirs]):
        mark = "*" if engine.name == settings.context.engine else " "
        version = f" {engine.version}" if engine.version else ""
        _print(f"{mark} {engine.name}{version} ({engine.source}): {engine.description}")
        if engine.problem:
            _print(f"    cannot be loaded: {engine.problem}")
    _print("\n* is active; the setting context.engine chooses another.")
    return 0


def _shown(setting: Setting, loaded: Loaded) -> str:
    value = setting.value(loaded.settings)
    if setting.secret and value:
        return f"{', '.join(value)} {HIDDEN}" if isinstance(value, dict) else HIDDEN
    return shown(value)


def _plain(setting: Setting, loaded: Loaded) -> Any:
    value = setting.value(loaded.settings)
    if setting.secret and value:
        return dict.fromkeys(value, HIDDEN) if isinstance(value, dict) else HIDDEN
    return value


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")

"""``watchkeeper completion``: what makes a shell complete commands, options, settings and their choices.

Rules: made from the command line and the settings as they are declared, by shtab, which writes one script that does not
start Python again when somebody presses Tab.
"""

import argparse
import sys

from ..settings import Setting, all_settings
from . import command_line

FILES = ("FILE", "PATH")
"""Placeholders of what is completed as a file's name."""


def completion(shell: str) -> int:
    """Print the script."""
    sys.stdout.write(script(shell) + "\n")
    return 0


def script(shell: str) -> str:
    import shtab

    top = command_line.parser()
    _settle(top)
    return str(shtab.complete(top, shell=shell))


def _settle(parser: command_line.Parser) -> None:
    """Give every command the settings as options, and every option its completions."""
    import shtab

    settings = {setting.name: setting for setting in all_settings()}
    for below in parser.below().values():
        _settle(below)
        for action in below._actions:
            if action.dest == "topic":
                action.choices = list(parser.below())
    for name, setting in settings.items():
        parser.add_argument(f"--{name}", help=setting.help.replace("%", "%%"), choices=_choices(setting))
    for action in parser._actions:
        action.help = None if action.help == argparse.SUPPRESS else action.help
        if action.dest.startswith(command_line.SETTING):
            action.choices = _choices(settings[action.dest.removeprefix(command_line.SETTING)])
        name = action.option_strings[0].removeprefix("--") if action.option_strings else ""
        if action.metavar in FILES or name in ("browser.executable", "browser.user_data_dir"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]


def _choices(setting: Setting) -> tuple[str, ...] | None:
    return setting.choices or (("true", "false") if setting.kind is bool else None)

"""What the commands do: settings first, then one function each.

Rule: an expected failure is a sentence on stderr and a status, never a traceback.
"""

import argparse
import sys
from collections.abc import Mapping

import anyio

from .cli import EXIT_FAILED, EXIT_USAGE
from .errors import told
from .settings_sources import Loaded, SettingsError, load


def run(command: str, parsed: argparse.Namespace, options: Mapping[str, str]) -> int:
    """The exit status of the command."""
    try:
        loaded = load(options, config=getattr(parsed, "config", None))
    except SettingsError as error:
        for problem in error.problems:
            say(problem)
        return EXIT_USAGE
    from .logs import start_logging

    start_logging(loaded.settings.server.log_level)
    try:
        return _run(command, parsed, loaded)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has seen enough.
        sys.stderr.close()
        return 0
    except Exception as error:
        known = told(_first(error))
        if known is None:
            raise
        say(f"{known.message} {known.hint}")
        return EXIT_FAILED


def _run(command: str, parsed: argparse.Namespace, loaded: Loaded) -> int:
    settings = loaded.settings
    match command:
        case "serve":
            from .serve import serve

            anyio.run(serve, settings)
            return 0
        case "config":
            from .show_config import show_config

            return show_config(loaded, as_json=parsed.json)
        case "doctor":
            from .doctor import examine

            return examine(settings)
        case "demo":
            from .demo import demo

            return anyio.run(demo, settings)
        case "compress":
            from .compress_file import compress_file

            return compress_file(parsed, settings)
        case "engines":
            from .show_config import show_engines

            return show_engines(settings)
    raise AssertionError(command)


def _first(error: BaseException) -> BaseException:
    """The error itself, where task groups have wrapped it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def say(text: str) -> None:
    """A line on stderr."""
    print(f"watchkeeper: {text}", file=sys.stderr)  # noqa: T201

"""What the commands do: settings first, then one function each.

Rule: an expected failure is a sentence on stderr and a status, never a traceback.
"""

import argparse
import sys
from collections.abc import Callable, Mapping

import anyio

from ..errors import told
from ..settings import Settings
from ..settings_sources import Loaded, SettingsError, load

EXIT_FAILED = 1
EXIT_USAGE = 2


def run(command: str, parsed: argparse.Namespace, options: Mapping[str, str]) -> int:
    """The exit status of the command."""
    try:
        loaded = _load(parsed, options)
    except SystemExit as wrong:
        return EXIT_USAGE if wrong.code is None else int(wrong.code)
    return _told(lambda: _run(command, parsed, loaded, options))


def prepared(parsed: argparse.Namespace, options: Mapping[str, str]) -> Settings:
    """The settings for serving over stdio; logging begins. Raises SystemExit where they are wrong."""
    return _load(parsed, options).settings


def _load(parsed: argparse.Namespace, options: Mapping[str, str]) -> Loaded:
    try:
        loaded = load(options, config=getattr(parsed, "config", None))
    except SettingsError as error:
        for problem in error.problems:
            say(problem)
        raise SystemExit(EXIT_USAGE) from None
    from ..observability.logs import CannotLog, log_crashes, start_logging
    from ..security.declared_secrets import DeclaredSecrets

    server, serving = loaded.settings.server, (parsed.command or "serve") == "serve"
    try:
        start_logging(
            server.log_level,
            DeclaredSecrets(loaded.settings).masked,
            format=server.log_format,
            file=server.log_file if serving else None,
        )
    except CannotLog as error:
        say(str(error))
        raise SystemExit(EXIT_USAGE) from None
    log_crashes()
    return loaded


def _told(command: Callable[[], int]) -> int:
    """Run a command; what is expected to fail is said in a sentence."""
    try:
        return command()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has seen enough.
        sys.stderr.close()
        return 0
    except Exception as error:  # noqa: BLE001 - raised again where nobody expects it
        return failed(error)


def failed(error: Exception) -> int:
    """Say in a sentence what is expected to fail; whatever else it is, is raised."""
    known = told(_first(error))
    if known is None:
        raise error
    said = known.message if known.message.endswith((".", "?", "!")) else f"{known.message}."
    say(f"{said} {known.hint}")
    return EXIT_FAILED


def _run(command: str, parsed: argparse.Namespace, loaded: Loaded, options: Mapping[str, str]) -> int:
    settings = loaded.settings
    match command:
        case "serve":
            from ..serve import serve

            anyio.run(serve, settings)
            return 0
        case "config":
            from .show import show_config

            return show_config(loaded, as_json=parsed.json)
        case "doctor":
            from .doctor import examine

            return examine(settings, as_json=parsed.json, with_browser=not parsed.no_browser)
        case "demo":
            from ..demo import demo

            return anyio.run(demo, options)
        case "compress":
            from .compress import compress_file

            return compress_file(parsed, settings)
        case "engines":
            from .show import show_engines

            return show_engines(settings)
        case "archive":
            from .archive import archive_command

            return archive_command(parsed, settings)
        case "install" | "uninstall":
            from .install import install_command

            return install_command(parsed, loaded, options)
        case "completion":
            from .completion import completion

            return completion(parsed.shell)
        case "hook":
            from .hook import hook_command

            return hook_command(parsed.event, settings)
    raise AssertionError(command)


def _first(error: BaseException) -> BaseException:
    """The error itself, where task groups have wrapped it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def say(text: str) -> None:
    """A line on stderr."""
    print(f"watchkeeper: {text}", file=sys.stderr)  # noqa: T201

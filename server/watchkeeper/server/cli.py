"""The command line.

Rules: this module is cheap to import: what a command needs is imported when it runs. What is wrong with options or
settings is told in a sentence, with status 2. Only ``serve`` over stdio may not write to stdout; the others do.
"""

import os
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from . import own_version

if TYPE_CHECKING:
    from .startup.boot import Front


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; gives the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["hook"] and not {"-h", "--help"} & set(arguments):
        from .commands.hook import harmlessly

        return harmlessly(lambda: _main(arguments))
    return _main(arguments)


def _main(arguments: list[str]) -> int:
    options, rest = _settings_options(arguments)
    if rest in ([], ["serve"]):
        # What clients start; reading more than that would double the time until the first answer.
        return _serve(SimpleNamespace(command="serve"), options)
    from .commands.command_line import SETTING, help_of, parser

    known = parser()
    parsed = known.parse_args(rest)
    for name, value in vars(parsed).items():
        if name.startswith(SETTING):
            options[name.removeprefix(SETTING)] = value
    command = parsed.command or "serve"
    if command == "version" or parsed.version:
        print(own_version())  # noqa: T201
        return 0
    if command == "help":
        print(help_of(known, parsed.topic), end="")  # noqa: T201
        return 0
    if command == "serve":
        return _serve(parsed, options)
    from .commands.run import run

    return run(command, parsed, options)


def _serve(parsed: Any, options: dict[str, str]) -> int:
    from .startup import boot

    boot.end_on_signals()
    if boot.may_answer(options, os.environ, getattr(parsed, "config", None)):
        return boot.start(lambda front: _loaded(front, parsed, options), boot.given(options, os.environ))
    from .commands.run import run

    return run("serve", parsed, options)


def _loaded(front: "Front", parsed: Any, options: dict[str, str]) -> int:
    """Load the server, which takes over from the front."""
    from .startup.loading import serve

    return serve(front, parsed, options)


def _settings_options(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Dotted name -> text, of long options (``--server.port 1``, ``--server.port=1``); and the other arguments."""
    options: dict[str, str] = {}
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        name, given, value = argument.partition("=")
        if not name.startswith("--") or "." not in name:
            rest.append(argument)
            continue
        if not given:
            found = next(waiting, None)
            if found is None:
                from .commands.command_line import parser

                parser().error(f"{name} needs a value")
            value = found
        options[name.removeprefix("--")] = value
    return options, rest

"""The command line.

Rules: this module is cheap to import: what a command needs is imported when it runs. What is wrong with options or
settings is told in a sentence, with status 2. Only ``serve`` over stdio may not write to stdout; the others do.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from . import own_version

if TYPE_CHECKING:
    from .boot import Handover

    Parsers = argparse._SubParsersAction[argparse.ArgumentParser]

SETTING = "setting:"
EPILOG = """\
Every setting is an option too: --browser.headless true. `watchkeeper config`
lists them all with their help; the environment (WATCHKEEPER_BROWSER__HEADLESS)
and a YAML file (--config) set the same. The command line wins, then the
environment, then the file."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; gives the exit status."""
    parser = _parser()
    options, rest = _settings_options(parser, list(sys.argv[1:] if argv is None else argv))
    parsed = parser.parse_args(rest)
    for name, value in vars(parsed).items():
        if name.startswith(SETTING):
            options[name.removeprefix(SETTING)] = value
    command = parsed.command or "serve"
    if command == "version":
        print(own_version())  # noqa: T201
        return 0
    if command == "serve":
        _end_on_signals()
        from . import boot

        if boot.may_answer(options, os.environ, getattr(parsed, "config", None)):
            has_browser = boot.names_browser(options, os.environ)
            return boot.start(lambda: _loaded(parsed, options), has_browser=has_browser)
    from .commands import run

    return run(command, parsed, options)


def _end_on_signals() -> None:
    """Until the server runs and ends by itself (lifetime.py), there is nothing that a signal could leave behind."""
    import signal

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))


def _loaded(parsed: argparse.Namespace, options: dict[str, str]) -> Callable[["Handover"], int]:
    """Import the server and read the settings; gives what serves. Raises SystemExit where the settings are wrong."""
    from .commands import prepared, serve_from

    settings = prepared(parsed, options)
    return lambda handover: serve_from(settings, handover)


def _settings_options(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
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
                parser.error(f"{name} needs a value")
            value = found
        options[name.removeprefix("--")] = value
    return options, rest


def _parser() -> argparse.ArgumentParser:
    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.RawDescriptionHelpFormatter(prog, max_help_position=26, width=79)

    def settings(*, told: bool) -> argparse.ArgumentParser:
        """The options that every command takes; ``told`` in its help."""
        parent = argparse.ArgumentParser(add_help=False)
        # Nothing is a default: it would overwrite what was given before the command's name.
        parent.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="settings as YAML")
        for name, target, metavar, about in SHORT_OPTIONS:
            parent.add_argument(
                f"--{name}",
                dest=f"{SETTING}{target}",
                metavar=metavar,
                default=argparse.SUPPRESS,
                help=about if told else argparse.SUPPRESS,
            )
        return parent

    parser = argparse.ArgumentParser(
        prog="watchkeeper",
        formatter_class=formatter,
        parents=[settings(told=True)],
        description="An MCP server: a browser that an agent cannot lose sight of, and a context\n"
        "that it can shrink without forgetting. Without a command it serves over stdio.",
        epilog=EPILOG,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    def command(name: str, help: str, *, told: bool = False, among: "Parsers | None" = None) -> argparse.ArgumentParser:
        return (among or commands).add_parser(
            name,
            help=help,
            description=f"{help[0].upper()}{help[1:]}.",
            parents=[settings(told=told)],
            formatter_class=formatter,
        )

    command("serve", "serve MCP over stdio, or with --transport http over HTTP", told=True)
    command("demo", "show on a real browser what it does, and check it")
    command("doctor", "what is found, what is missing, and how to mend it")
    compress = command("compress", "compress a transcript, and report what was kept")
    compress.add_argument("transcript", metavar="FILE", help="JSON or JSONL, or claude-code:latest")
    compress.add_argument("--json", action="store_true", help="messages and report as JSON on stdout")
    compress.add_argument("--output", metavar="FILE", help="write the compressed messages there, in the same form")
    compress.add_argument("--target-tokens", type=int, metavar="N", help="cap of the whole result")
    compress.add_argument("--focus", metavar="TOPIC", help="what most of the summary should be about")
    compress.add_argument("--model", metavar="NAME", help="for token counts and the window")
    compress.add_argument("--dry-run", action="store_true", help="the report only; changes nothing")
    config = command("config", "every setting with its value, its source and its help")
    config.add_argument("--json", action="store_true", help="as JSON")
    command("engines", "the context engines that could be chosen")
    archive = command("archive", "what the archive holds, and deleting from it")
    actions = archive.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)

    def action(name: str, help: str) -> argparse.ArgumentParser:
        added = command(name, help, among=actions)
        added.add_argument(
            "--principal", type=_name, metavar="NAME", help="of the archive of this name in server.auth_tokens"
        )
        return added

    listed = action("list", "the conversations, the newest first")
    listed.add_argument("--json", action="store_true", help="as JSON")
    forget = action("forget", "delete one conversation, without asking")
    forget.add_argument("session", metavar="SESSION", help="its name in the list")
    prune = action("prune", "delete old conversations, without asking")
    prune.add_argument("--days", type=_amount, metavar="N", help="those last added to longer ago")
    prune.add_argument("--megabytes", type=_amount, metavar="N", help="then the oldest, until the rest fits")
    prune.epilog = "Without either: as context.archive_keep_days and\ncontext.archive_keep_megabytes say."
    command("version", "print the version")
    return parser


def _name(text: str) -> str:
    if any(sign in text for sign in "/\\\0"):  # it becomes a part of a file's name
        raise argparse.ArgumentTypeError(f"{text!r} cannot be a name")
    return text


def _amount(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):  # 0 would delete everything, where elsewhere it means that nothing is
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


SHORT_OPTIONS = (
    ("transport", "server.transport", "KIND", "stdio (default) or http"),
    ("host", "server.host", "ADDRESS", "where to listen (default 127.0.0.1)"),
    ("port", "server.port", "N", "port to listen on; 0: any free one"),
    ("cdp-url", "browser.cdp_url", "URL", "use this running browser"),
    ("executable", "browser.executable", "PATH", "start this browser"),
    ("headless", "browser.headless", "BOOL", "without a window"),
    ("toolsets", "server.toolsets", "NAMES", "which tools are offered: core,…"),
    ("log-level", "server.log_level", "LEVEL", "what is logged on stderr"),
)
"""Name, setting, placeholder and help of options that are often needed."""

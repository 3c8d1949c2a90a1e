"""The command line.

Rules: this module is cheap to import: what a command needs is imported when it runs. What is wrong with options or
settings is told in a sentence, with status 2. Only ``serve`` over stdio may not write to stdout; the others do.
"""

import argparse
import sys
from collections.abc import Sequence

from . import own_version

EXIT_FAILED = 1
EXIT_USAGE = 2
SETTING = "setting:"
EPILOG = """\
Every setting is an option too: --browser.headless true. `watchkeeper config`
lists them all with their help; environment (WATCHKEEPER_BROWSER__HEADLESS) and a
YAML file (--config) set the same. The command line wins, then the environment,
then the file."""


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
    from .commands import run

    return run(command, parsed, options)


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

    common = argparse.ArgumentParser(add_help=False, formatter_class=formatter)
    # A parent's default would overwrite what was given before the command's name.
    common.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="settings as YAML")
    for name, target, metavar, help in SHORT_OPTIONS:
        common.add_argument(
            f"--{name}", dest=f"{SETTING}{target}", metavar=metavar, default=argparse.SUPPRESS, help=help
        )
    parser = argparse.ArgumentParser(
        prog="watchkeeper",
        formatter_class=formatter,
        parents=[common],
        description="An MCP server: a browser that an agent cannot lose sight of, and a context\n"
        "that it can shrink without forgetting. Without a command it serves over stdio.",
        epilog=EPILOG,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    def command(name: str, help: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=help, description=help, parents=[common], formatter_class=formatter)

    command("serve", "serve MCP over stdio, or with --transport http over HTTP")
    command("demo", "show on a real browser what it does, and check it")
    command("doctor", "what is found, what is missing, and how to mend it")
    compress = command("compress", "compress a transcript, and report what was kept")
    compress.add_argument("transcript", metavar="FILE", help="JSON or JSONL, or claude-code:latest")
    compress.add_argument("--json", action="store_true", help="messages and report as JSON on stdout")
    compress.add_argument("--output", metavar="FILE", help="write the compressed messages there, in the same form")
    compress.add_argument("--target-tokens", type=int, metavar="N", help="cap of the whole result")
    compress.add_argument("--focus", metavar="TOPIC", help="what most of the summary should be about")
    config = command("config", "every setting with its value, its source and its help")
    config.add_argument("--json", action="store_true", help="as JSON")
    command("engines", "the context engines that could be chosen")
    command("version", "print the version")
    return parser


SHORT_OPTIONS = (
    ("transport", "server.transport", "KIND", "stdio (default) or http"),
    ("host", "server.host", "ADDRESS", "where to listen (default 127.0.0.1)"),
    ("port", "server.port", "N", "port to listen on; 0: any free one"),
    ("cdp-url", "browser.cdp_url", "URL", "use this running browser"),
    ("executable", "browser.executable", "PATH", "start this browser"),
    ("headless", "browser.headless", "BOOL", "without a window"),
    ("log-level", "server.log_level", "LEVEL", "what is logged on stderr"),
)
"""Name, setting, placeholder and help of options that are often needed."""

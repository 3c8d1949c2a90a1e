"""What the command line takes: every command, its options and its examples.

Rules: imports nothing but the standard library, since every start may read it. A help text fits into 80 columns and
has an example wherever a command takes anything of its own. A wrong name is answered with the nearest right one.
Completions for shells and the settings' options are made from what stands here (shell_completion.py).
"""

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

SETTING = "setting:"
"""What the destination of a short option begins with; the setting's name follows."""
CLIENTS = ("claude-desktop", "claude-code", "cursor", "vscode", "vscode-insiders")
"""The names of the clients in install/clients.py, in its order."""
SHELLS = ("bash", "zsh", "fish")
SHORT_OPTIONS = (
    ("transport", "server.transport", "KIND", "stdio (default) or http"),
    ("host", "server.host", "ADDRESS", "where to listen (default 127.0.0.1)"),
    ("port", "server.port", "N", "port to listen on; 0: any free one"),
    ("cdp-url", "browser.cdp_url", "URL", "use this running browser"),
    ("executable", "browser.executable", "PATH", "start this browser"),
    ("headless", "browser.headless", "BOOL", "without a window"),
    ("toolsets", "server.toolsets", "NAMES", "which tools are offered: core,…"),
    ("log-level", "server.log_level", "LEVEL", "what is logged on stderr"),
    ("log-file", "server.log_file", "FILE", "log into this file as well"),
)
"""Name, setting, placeholder and help of options that are often needed."""
EPILOG = """\
Every setting is an option too: --browser.headless true. `watchkeeper config`
lists them all with their help; the environment (WATCHKEEPER_BROWSER__HEADLESS)
and a YAML file (--config) set the same. The command line wins, then the
environment, then the file.

exit status:
  0    done
  1    it failed, or doctor found something to mend
  2    the command line or a setting is wrong
  3    install: nothing was changed, because nobody agreed to it
  130  interrupted"""


class Parser(argparse.ArgumentParser):
    """Says the nearest name where one is wrong."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            what = action.dest if action.metavar is None else str(action.metavar).lower()
            raise argparse.ArgumentError(None, f"unknown {what} {str(value)[:80]!r}{_nearest(str(value), known)}")

    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix("unrecognized arguments: ").partition(" ")[0]
        if unknown != message.partition(" ")[0] and unknown.startswith("--"):
            message = f"unknown option {unknown}{_nearest(unknown, self.options())}"
        super().error(f"{message}\nTry `watchkeeper help`." if "help" not in message else message)

    def options(self) -> list[str]:
        """Long options of this command and of all that are below it."""
        own = [option for action in self._actions for option in action.option_strings if option.startswith("--")]
        return [*own, *(option for below in self.below().values() for option in below.options())]

    def below(self) -> "dict[str, Parser]":
        """The commands below this one, by name."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return dict(action.choices)
        return {}


def _nearest(value: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(value, known, 1, 0.5)
    if near:
        return f": did you mean {near[0]}?"
    return f": it is one of {', '.join(known)}" if known and len(known) < 20 else ""


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=26, width=79)


def _settings(*, told: bool) -> Parser:
    """The options that every command takes; ``told`` in its help."""
    parent = Parser(add_help=False)
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


def parser() -> Parser:
    """The whole command line."""
    top = Parser(
        prog="watchkeeper",
        formatter_class=_formatter,
        parents=[_settings(told=True)],
        description="An MCP server: a browser that an agent cannot lose sight of, and a context\n"
        "that it can shrink without forgetting. Without a command it serves over stdio.",
        epilog=EPILOG,
    )
    top.add_argument("--version", action="store_true", help="print the version")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)

    def command(
        name: str,
        help: str,
        *examples: str,
        more: str = "",
        told: bool = False,
        among: "argparse._SubParsersAction[Parser] | None" = None,
    ) -> Parser:
        shown = "examples:\n" + "\n".join(f"  {example}" for example in examples) if examples else ""
        return (among or commands).add_parser(
            name,
            help=help,
            description=f"{help[0].upper()}{help[1:]}.",
            epilog="\n\n".join(filter(None, (more, shown))),
            parents=[_settings(told=told)],
            formatter_class=_formatter,
        )

    command(
        "serve",
        "serve MCP over stdio, or with --transport http over HTTP",
        "watchkeeper serve",
        "watchkeeper serve --transport http --port 8765",
        "watchkeeper serve --cdp-url http://127.0.0.1:9222",
        told=True,
    )
    _install(command)
    doctor = command(
        "doctor",
        "what is found, what is missing, and how to mend it",
        "watchkeeper doctor",
        "watchkeeper doctor --no-browser",
        "watchkeeper doctor --json",
        more="The status is 1 when something would keep the server from its job.",
    )
    doctor.add_argument("--json", action="store_true", help="the findings as JSON")
    doctor.add_argument("--no-browser", action="store_true", help="start no browser")
    command("demo", "show on a real browser what it does, and check it", "watchkeeper demo")
    _compress(command)
    config = command(
        "config",
        "every setting with its value, its source and its help",
        "watchkeeper config",
        "watchkeeper config --config watchkeeper.yaml --json",
    )
    config.add_argument("--json", action="store_true", help="as JSON")
    command("engines", "the context engines that could be chosen", "watchkeeper engines")
    _archive(command)
    _hook(command)
    completion = command(
        "completion",
        "print what makes a shell complete commands and options",
        "d=~/.local/share/bash-completion/completions; mkdir -p $d",
        "watchkeeper completion bash > $d/watchkeeper",
        "watchkeeper completion zsh > ~/.zfunc/_watchkeeper   # a folder of $fpath",
        "watchkeeper completion fish > ~/.config/fish/completions/watchkeeper.fish",
    )
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")
    help_ = command("help", "the help of a command", "watchkeeper help install", "watchkeeper help archive prune")
    help_.add_argument("topic", metavar="COMMAND", nargs="*", help="the command, and what is below it")
    command("version", "print the version", "watchkeeper version")
    return top


def _install(command: Any) -> None:
    install = command(
        "install",
        "write the entry of a client that starts Watchkeeper",
        "watchkeeper install --list",
        "watchkeeper install claude-desktop",
        "watchkeeper install cursor --scope project --browser.headless true",
        "watchkeeper install claude-code --with-hook",
        "watchkeeper install vscode --print",
        more="The change is shown first, and written when you agree. Settings that are given\n"
        "become part of the entry; secrets among them go into its `env`.",
    )
    _client(install)
    install.add_argument("--list", action="store_true", help="the clients, their files, and what is in them")
    install.add_argument("--print", action="store_true", help="print what to paste; write nothing")
    install.add_argument("--undo", action="store_true", help="the same as the command uninstall")
    install.add_argument(
        "--with-hook",
        dest="hook",
        action="store_true",
        default=None,
        help="Claude Code: keep the originals before it compacts",
    )
    install.add_argument("--no-hook", dest="hook", action="store_false", default=None, help="take the hook out")
    uninstall = command(
        "uninstall",
        "take the entry out again, and put back what was there",
        "watchkeeper uninstall claude-desktop",
        "watchkeeper uninstall cursor --scope project --yes",
    )
    _client(uninstall)


def _client(parser: Parser) -> None:
    parser.add_argument("client", metavar="CLIENT", nargs="?", choices=CLIENTS, help=", ".join(CLIENTS[:3]) + ", …")
    parser.add_argument(
        "--scope",
        metavar="WHERE",
        choices=("user", "project"),
        help="user (default): everywhere; project: this folder",
    )
    parser.add_argument("--file", metavar="FILE", help="another file than the client's usual one")
    parser.add_argument(
        "--name", metavar="NAME", type=_entry_name, default="watchkeeper", help="of the entry (default watchkeeper)"
    )
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--force", action="store_true", help="also where the entry is not one of ours")


def _compress(command: Any) -> None:
    compress = command(
        "compress",
        "compress a transcript, and report what was kept",
        "watchkeeper compress conversation.json --target-tokens 8000",
        "watchkeeper compress claude-code:latest --dry-run",
        "watchkeeper compress chat.jsonl --output short.jsonl --focus refunds",
    )
    compress.add_argument("transcript", metavar="FILE", help="JSON or JSONL, or claude-code:latest")
    compress.add_argument("--json", action="store_true", help="messages and report as JSON on stdout")
    compress.add_argument("--output", metavar="FILE", help="write the compressed messages there, in the same form")
    compress.add_argument("--target-tokens", type=int, metavar="N", help="cap of the whole result")
    compress.add_argument("--focus", metavar="TOPIC", help="what most of the summary should be about")
    compress.add_argument("--model", metavar="NAME", help="for token counts and the window")
    compress.add_argument("--dry-run", action="store_true", help="the report only; changes nothing")


def _archive(command: Any) -> None:
    archive = command(
        "archive",
        "what the archive holds, and deleting from it",
        "watchkeeper archive list",
        "watchkeeper archive prune --days 90",
    )
    actions = archive.add_subparsers(
        dest="action", metavar="ACTION", title="actions", required=True, parser_class=Parser
    )

    def action(name: str, help: str, *examples: str, more: str = "") -> Parser:
        added: Parser = command(name, help, *examples, more=more, among=actions)
        added.add_argument(
            "--principal", type=_name, metavar="NAME", help="of the archive of this name in server.auth_tokens"
        )
        return added

    listed = action("list", "the conversations, the newest first", "watchkeeper archive list --json")
    listed.add_argument("--json", action="store_true", help="as JSON")
    forget = action("forget", "delete one conversation, without asking", "watchkeeper archive forget my-conversation")
    forget.add_argument("session", metavar="SESSION", help="its name in the list")
    prune = action(
        "prune",
        "delete old conversations, without asking",
        "watchkeeper archive prune --days 90 --megabytes 500",
        more="Without either: as context.archive_keep_days and\ncontext.archive_keep_megabytes say.",
    )
    prune.add_argument("--days", type=_amount, metavar="N", help="those last added to longer ago")
    prune.add_argument("--megabytes", type=_amount, metavar="N", help="then the oldest, until the rest fits")


def _hook(command: Any) -> None:
    hook = command(
        "hook",
        "what Claude Code calls when it compacts; reads JSON on stdin",
        "watchkeeper install claude-code --with-hook",
        more="pre-compact keeps the originals in the archive and prepares a record of them;\n"
        "session-start hands that record over. The status is always 0.",
    )
    hook.add_argument("event", metavar="EVENT", choices=("pre-compact", "session-start"), help="the event")


def _name(text: str) -> str:
    if any(sign in text for sign in "/\\\0"):  # it becomes a part of a file's name
        raise argparse.ArgumentTypeError(f"{text!r} cannot be a name")
    return text


def _entry_name(text: str) -> str:
    if not text or len(text) > 64 or not all(sign.isascii() and (sign.isalnum() or sign in "-_") for sign in text):
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is no name: up to 64 letters, digits, - and _")
    return text


def _amount(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):  # 0 would delete everything, where elsewhere it means that nothing is
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def help_of(top: Parser, topic: Iterable[str]) -> str:
    """The help of a command. Exits with 2 where there is none."""
    found = top
    for name in topic:
        below = found.below()
        if name not in below:
            found.error(f"unknown command {name[:80]!r}{_nearest(name, list(below))}")
        found = below[name]
    return found.format_help()

"""``watchkeeper install`` and ``uninstall``: shows what will change, asks, writes.

Rules: nothing is written before it was shown and agreed to. Where nobody can be asked, nothing is written without
``--yes``, and the status says so. Secrets are not shown.
"""

import argparse
import json
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from ...errors import ToolError
from ...settings_sources import Loaded
from . import change, ledger, plan
from .clients import CLIENTS, Client, Machine, Scope, client_named, location
from .config_file import difference, read, write
from .launch import is_ours, launch
from .plan import FilePlan, Plan, Wish

EXIT_USAGE = 2
EXIT_NOT_AGREED = 3
WIDTH = 79


def install_command(
    parsed: argparse.Namespace,
    loaded: Loaded,
    options: Mapping[str, str],
    *,
    machine: Machine | None = None,
    ask: Callable[[str], str] | None = None,
) -> int:
    """The exit status. ``ask``: puts a question to a person; by default to the terminal, where there is one.

    Raises: ToolError where a file or an option is not as it has to be.
    """
    machine = machine or Machine.here()
    undo = parsed.command == "uninstall" or parsed.undo
    if getattr(parsed, "list", False):
        return _list(machine)
    if parsed.client is None:
        sys.stderr.write(f"watchkeeper: name a client: {', '.join(client.name for client in CLIENTS)}\n")
        return EXIT_USAGE
    wish = Wish(
        client_named(parsed.client),
        parsed.scope or "user",
        parsed.name,
        Path(parsed.file).expanduser().absolute() if parsed.file else None,
        getattr(parsed, "hook", None),
        parsed.force,
        getattr(parsed, "config", None),
        options,
    )
    known = ledger.pieces(ledger.location())
    if undo:
        decided = plan.undo(wish, machine, known)
    else:
        decided = plan.install(wish, launch(sys.argv[0]), loaded.settings, machine, known)
        if parsed.print:
            _print("\n".join(decided.paste))
            return 0
    changing = [file for file in decided.files if not file.nothing]
    if not changing:
        at = decided.files[0].before.path
        _print(f"Nothing to take out: no entry {wish.name!r} in {at}." if undo else f"It is there already: {at}.")
        return 0
    for file in changing:
        _print(_shown(difference(file.before, file.text), decided))
    for note in decided.notes:
        _print(textwrap.fill(note, WIDTH, initial_indent="* ", subsequent_indent="  ", break_on_hyphens=False))
    if not parsed.yes:
        ask = ask or (_asked if sys.stdin.isatty() and sys.stdout.isatty() else None)
        if ask is None or ask("\nWrite this? [y/N] ").strip().casefold() not in ("y", "yes"):
            _print("Nothing was written." + (" --yes writes without asking." if ask is None else ""))
            return EXIT_NOT_AGREED
    _write(changing, known)
    if not undo:
        again = f"watchkeeper uninstall {wish.client.name}{' --scope project' if wish.scope == 'project' else ''}"
        _print(f"{wish.client.then} Undo: {again}")
    return 0


def _asked(question: str) -> str:
    try:
        return input(question)
    except EOFError:
        return ""


def _write(files: list[FilePlan], known: list[ledger.Piece]) -> None:
    """The ledger first: what is in it and not in a file does no harm, the other way round it would."""
    kept = [piece for file in files for piece in file.keep]
    places = {(piece.file, piece.path) for piece in kept}
    known = [piece for piece in known if (piece.file, piece.path) not in places] + kept
    ledger.keep(ledger.location(), known)
    for file in files:
        backup = write(file.before, file.text, locked=file.locked)
        what = "Removed" if file.text is None else "Written"
        _print(f"{what}: {file.before.path}" + (f"\n  as it was: {backup}" if backup else ""))
    gone = {(str(file.before.real), path) for file in files for path in file.drop}
    if gone:
        ledger.keep(ledger.location(), [piece for piece in known if (piece.file, piece.path) not in gone])


def _shown(text: str, decided: Plan) -> str:
    """A diff without secrets: ours, and what looks like one in the lines around."""
    from watchkeeper.context.redact import redact

    for secret in decided.secrets:
        for form in (secret, json.dumps(secret, ensure_ascii=False)[1:-1]):
            text = text.replace(form, "(hidden)")
    return redact(text)


def _list(machine: Machine) -> int:
    for client in CLIENTS:
        _print(f"{client.name}: {client.title}")
        for scope in client.scopes():
            _print(f"  {scope:<8} {_state(client, scope, machine)}")
    return 0


def _state(client: Client, scope: Scope, machine: Machine) -> str:
    try:
        path = location(client, scope, machine)
        file = read(path)
        if file.data is None:
            return f"{path}\n           no such file yet"
        found = change.current(file, client.key)
    except ToolError as error:
        return f"{error.message}"
    entries = [name for name, one in found.items() if is_ours(one)] if isinstance(found, dict) else []
    return f"{path}\n           {'entry ' + ', '.join(entries) if entries else 'no entry of Watchkeeper'}"


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")

"""The entries of clients: whether there is one, and whether what it starts can be started.

Rules: a command is run only where it is the person's own: named in a file of the user, or written by ``install``. One
in a project's file may be anybody's. Runners such as uvx are not run: they may fetch from the network.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import own_version
from ...errors import ToolError
from ...settings import ENV_PREFIX
from ..install import change, hooks, ledger
from ..install.clients import CLIENTS, Client, Machine, Scope, hooks_file, location
from ..install.config_file import read
from ..install.launch import RUNNERS, is_ours
from .finding import Finding, Findings

START_S = 20.0


def examined() -> Findings:
    machine = Machine.here()
    known = ledger.pieces(ledger.location())
    none = []
    seen: set[Path] = set()
    for client in CLIENTS:
        found = False
        for scope in client.scopes():
            if scope == "project":
                shared = machine.current / str(client.project)
                if shared in seen:
                    continue  # two clients may have the same file in a project
                seen.add(shared)
            for finding in _entries(client, scope, machine, known):
                found = True
                yield finding
        if not found:
            none.append(client.name)
    if none:
        yield Finding("ok", "clients", f"no entry for {', '.join(none)}: `watchkeeper install` writes one")


def _entries(client: Client, scope: Scope, machine: Machine, known: list[ledger.Piece]) -> Findings:
    about = f"{client.title} ({scope})"
    try:
        file = read(location(client, scope, machine))
        there = change.current(file, client.key)
    except ToolError as error:
        yield Finding("note", "clients", f"{about}: {error.message}", error.hint.partition("\n")[0])
        return
    for name, entry in there.items() if isinstance(there, dict) else ():
        if is_ours(entry):
            trusted = scope == "user" or ledger.find(known, file.real, (*client.key, name)) is not None
            yield _entry(f"{about}, entry {name}", entry, client, scope, machine, trusted=trusted)
            if client.hooks:
                yield from _hooks(client, scope, machine)


def _entry(
    about: str, entry: Mapping[str, Any], client: Client, scope: Scope, machine: Machine, *, trusted: bool
) -> Finding:
    command = entry["command"]
    arguments = [str(word) for word in entry.get("args") or ()]
    again = f"watchkeeper install {client.name}{' --scope project' if scope == 'project' else ''}"
    wrong = unusable(command)
    if wrong:
        return Finding("wrong", "clients", f"{about}: {wrong}", f"`{again}` writes it anew.")
    if not Path(command).is_absolute():
        said = f"{about}: the command {command} has no path, and desktop programs have a short PATH"
        return Finding("note", "clients", said, f"`{again}` writes it with its path.")
    if Path(command).name.removesuffix(".exe") in RUNNERS:
        return Finding("ok", "clients", f"{about}: starts {command}, which was not tried, as it may use the network")
    if not trusted:
        remedy = f"If the project is yours: `{again}`."
        return Finding("note", "clients", f"{about}: not tried, as its file may be anybody's: {command}", remedy)
    version, problem = tried(command, arguments, entry.get("env"))
    if problem:
        return Finding(
            "wrong", "clients", f"{about}: {command} does not start: {problem}", f"`{again}` writes it anew."
        )
    if version != own_version():
        said = f"{about}: starts version {version}, and this is {own_version()}"
        return Finding("note", "clients", said, f"`{again}` makes it start this one.")
    return Finding("ok", "clients", f"{about}: starts {command}")


def unusable(command: str) -> str:
    """Why a command cannot be started; empty where it can."""
    path = Path(command)
    if not path.is_absolute():
        return "" if shutil.which(command) else f"the command {command} is not found"
    if not path.exists():
        return f"the command {command} does not exist"
    return "" if path.is_file() and os.access(path, os.X_OK) else f"the command {command} cannot be executed"


def tried(command: str, arguments: Sequence[str], environment: Any) -> tuple[str, str]:
    """The version that it prints, or what went wrong, its settings included; as a desktop program would start it."""
    own = environment if isinstance(environment, dict) else {}
    left_out = (ENV_PREFIX, "PYTHONPATH")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    variables |= {"PATH": os.defpath} if os.name == "posix" else {}
    variables |= {str(name): str(value) for name, value in own.items()}
    version, problem = _run([command, *arguments, "version"], variables)
    if not problem and version == own_version():
        _, problem = _run([command, *arguments, "config"], variables)
    return version[:50], problem


def _run(command: list[str], environment: dict[str, str]) -> tuple[str, str]:
    """What it prints, or what went wrong."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=START_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"it did not answer in {START_S:.0f} s"
    except (OSError, ValueError) as error:
        return "", str(getattr(error, "strerror", None) or error)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return "", lines[-1].removeprefix("watchkeeper: ")[:200] if lines else f"status {done.returncode}"
    return done.stdout.strip(), ""


def _hooks(client: Client, scope: Scope, machine: Machine) -> Findings:
    try:
        file = read(hooks_file(client, scope, machine))
        groups = {
            event: [one for one in change.current(file, ("hooks", event)) or () if hooks.is_our_hook(one)]
            for event, _, _ in hooks.EVENTS
        }
    except ToolError as error:
        yield Finding("note", "hook", f"{client.title} ({scope}): {error.message}", error.hint.partition("\n")[0])
        return
    about = f"{client.title} ({scope}), hook"
    again = f"watchkeeper install {client.name} --with-hook"
    if not any(groups.values()):
        return
    if not all(groups.values()):
        missing = ", ".join(event for event, found in groups.items() if not found)
        yield Finding("wrong", "hook", f"{about}: {missing} is missing", f"`{again}` writes it anew.")
        return
    for found in groups.values():
        command = hooks.command_words(found[-1])[0][0]
        wrong = unusable(command)
        if wrong:
            yield Finding("wrong", "hook", f"{about}: {wrong}", f"`{again}` writes it anew.")
            return
    yield Finding("ok", "hook", f"{about}: kept before it compacts, handed over afterwards")

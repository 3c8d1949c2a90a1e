"""All that one ``install`` or ``uninstall`` changes, file by file, and what the person should know of it.

Rules: everything is decided here, and nothing is written. Several changes of one file are one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import ToolError
from ...settings import Settings
from . import change, hooks, jsonc, ledger
from .change import Change, snippet
from .clients import Client, Machine, Scope, hooks_file, location
from .config_file import ConfigFile, read
from .entry import check_shared, entry, for_hook, given, unsaid
from .launch import Launch
from .ledger import Piece

ARCHIVE = "context.archive"
BUILT_IN = "compressor"


@dataclass(slots=True)
class FilePlan:
    """A file as it is, its text afterwards (None: it goes), and what the ledger holds of it then."""

    before: ConfigFile
    text: str | None
    locked: bool = False
    keep: list[Piece] = field(default_factory=list)
    drop: list[tuple[str, ...]] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path, *, locked: bool = False) -> "FilePlan":
        file = read(path)
        return cls(file, None if file.data is None else file.text, locked)

    @property
    def now(self) -> ConfigFile:
        """The file as it would be after the changes that were added."""
        return replace(self.before, text=self.text or "")

    @property
    def nothing(self) -> bool:
        return self.text == (None if self.before.data is None else self.before.text)

    def add(self, done: Change | None) -> None:
        if done is None or done.nothing:
            return
        self.text = done.text
        if done.piece is None:
            self.drop.append(done.path)
        else:
            self.keep.append(done.piece)


@dataclass(slots=True)
class Plan:
    files: list[FilePlan] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    secrets: tuple[str, ...] = ()
    """Values that are not shown."""
    paste: list[str] = field(default_factory=list)
    """What somebody would paste instead."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for. ``hook``: whether there shall be one; None leaves that as it is."""

    client: Client
    scope: Scope
    name: str
    file: Path | None = None
    hook: bool | None = None
    force: bool = False
    config: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def install(wish: Wish, launch: Launch, settings: Settings, machine: Machine, known: list[Piece]) -> Plan:
    """Raises ToolError; nothing was changed then."""
    client, plan = wish.client, Plan()
    if wish.hook and not client.hooks:
        raise ToolError("no_hooks", f"{client.title} has no hooks of this kind.", "Leave --with-hook out.")
    hooked = FilePlan.of(hooks_file(client, wish.scope, machine)) if client.hooks else None
    hook = bool(wish.hook or (wish.hook is None and hooked is not None and _hooked(hooked.before)))
    options = _with_archive(wish.options, settings) if hook else wish.options
    mine = given(options, wish.config, machine)
    check_shared(wish.scope, mine)
    plan.secrets = tuple(mine.environment.values())
    path = (*client.key, wish.name)
    file = FilePlan.of(wish.file or location(client, wish.scope, machine), locked=client.locked and not wish.file)
    alone = entry(client, launch, mine)
    value = entry(client, launch, mine, change.current(file.before, path, alone))
    file.add(change.put(file.before, path, value, ledger.find(known, file.before.real, path), force=wish.force))
    plan.files.append(file)
    plan.paste.append(snippet(path, alone))
    plan.notes += _notes(wish, file, launch, mine.secret, machine)
    if hooked is not None:
        wanted = hooks.hooks(launch, for_hook(options, wish.config, machine), machine.system) if hook else []
        for place, group in wanted:
            earlier = ledger.find(known, hooked.before.real, place)
            hooked.add(change.put_element(hooked.now, place, group, hooks.is_our_hook, earlier))
        if not hook:
            _take_hooks(hooked, known)
        plan.files.append(_as_it_was_made(hooked, known))
        if hook:
            merged = {"hooks": {place[-1]: [group] for place, group in wanted}}
            plan.paste.append(f"and in {hooked.before.path}:\n{snippet((), merged)}")
            plan.notes.append(
                "The hook keeps the originals of conversations in the archive, on this machine, whenever Claude Code "
                "compacts; docs/clients.md says what it does."
            )
    return plan


def undo(wish: Wish, machine: Machine, known: list[Piece]) -> Plan:
    """Raises ToolError; nothing was changed then."""
    client, plan = wish.client, Plan()
    path = (*client.key, wish.name)
    file = FilePlan.of(wish.file or location(client, wish.scope, machine), locked=client.locked and not wish.file)
    earlier = ledger.find(known, file.before.real, path)
    file.add(change.take_out(file.before, path, earlier, force=wish.force))
    plan.files.append(file)
    if client.hooks:
        hooked = FilePlan.of(hooks_file(client, wish.scope, machine))
        _take_hooks(hooked, known)
        plan.files.append(hooked)
    return plan


def _take_hooks(hooked: FilePlan, known: list[Piece]) -> None:
    for event, _, _ in hooks.EVENTS:
        place = ("hooks", event)
        earlier = ledger.find(known, hooked.before.real, place)
        hooked.add(change.take_out_elements(hooked.now, place, hooks.is_our_hook, earlier))


def _hooked(file: ConfigFile) -> bool:
    """Whether one of our hooks is there already."""
    for event, _, _ in hooks.EVENTS:
        groups = change.current(file, ("hooks", event))
        if isinstance(groups, list) and any(map(hooks.is_our_hook, groups)):
            return True
    return False


def _as_it_was_made(plan: FilePlan, known: list[Piece]) -> FilePlan:
    """The second change of a file found what the first had made; undoing counts from the file as it was."""
    text = "{}" if plan.before.blank else plan.before.text
    for n, piece in enumerate(plan.keep):
        if ledger.find(known, plan.before.real, piece.path) is None:
            plan.keep[n] = replace(piece, had=jsonc.depth(text, piece.path))
    return plan


def _with_archive(options: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """The hook fills the archive; the server has to offer it."""
    if settings.context.engine != BUILT_IN or settings.context.archive:
        return dict(options) if settings.context.engine != BUILT_IN else {**options, ARCHIVE: "true"}
    if ARCHIVE in options:
        raise ToolError("no_archive", f"The hook needs the archive, and {ARCHIVE} is false.", "Leave it out.")
    return {**options, ARCHIVE: "true"}


def _notes(wish: Wish, file: FilePlan, launch: Launch, secret: tuple[str, ...], machine: Machine) -> list[str]:
    client, path = wish.client, file.before.path
    notes = [launch.note] if launch.note else []
    if secret:
        notes.append(f"{', '.join(secret)} goes into `env`, not onto the command line; it stands in the file then.")
    if path.is_symlink():
        notes.append(f"{path} is a link; what changes is {file.before.real}.")
    if not path.parent.is_dir() and wish.scope == "user":
        notes.append(f"{path.parent} is not there yet: is {client.title} installed? It will be made.")
    if wish.scope == "project":
        notes.append("The entry holds paths of this machine; others who share the project need their own.")
    if not client.comments and not file.before.blank and not _plain_json(file.before.text):
        notes.append(f"{path} has comments or trailing commas, which {client.title} may not read. They stay.")
    left_out = unsaid(machine)
    if left_out:
        notes.append(f"Set in this shell, but not in the entry: {', '.join(left_out)}.")
    return notes


def _plain_json(text: str) -> Any:
    import json

    try:
        json.loads(text)
    except ValueError:
        return False
    return True

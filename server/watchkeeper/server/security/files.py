"""Files that clients may name: whether they may be used, and how they are written.

Rules: only inside the allowed folders, after resolving links, at the moment of use, whatever the tool or command. What
lies elsewhere is refused alike whether it exists or not. What is written only its owner can read. ``claude-code:…``
names a session of Claude Code by its own name; only a client on this machine's stdio may use it.
"""

import os
from pathlib import Path

from ..errors import ToolError
from ..settings import Settings


def allowed_folders(settings: Settings) -> list[Path]:
    """Resolved; the first one is where files are written."""
    return [Path(folder).expanduser().resolve() for folder in settings.server.allowed_dirs] or [_default_folder()]


def _default_folder() -> Path:
    """The current folder, unless that is everything: some clients start servers in ``/`` or in the home folder."""
    current = Path.cwd()
    if current != Path(current.anchor) and current != Path.home():
        return current
    from watchkeeper.context.archive.location import default_location

    own = default_location().parent / "files"
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    return own.resolve()


def allowed_file(path: Path, settings: Settings) -> Path:
    """The file itself, when it lies in an allowed folder. Raises ToolError ``path_refused``."""
    folders = allowed_folders(settings)
    try:
        resolved = path.expanduser().resolve()
        strange = resolved.exists() and not (resolved.is_file() or resolved.is_dir())
    except (OSError, RuntimeError, ValueError):  # links in a circle, no such home, a zero byte, too long a name
        raise ToolError("path_refused", f"{str(path)[:200]!r} cannot be a path.", "Name a file.") from None
    if not any(resolved.is_relative_to(folder) for folder in folders):
        raise ToolError(
            "path_refused",
            f"{resolved} is outside of the allowed folders.",
            f"Allowed: {', '.join(map(str, folders))}; server.allowed_dirs sets them.",
        )
    if strange:  # opening a pipe could wait for ever
        raise ToolError("path_refused", f"{resolved} is neither a file nor a folder.", "Name a file.")
    return resolved


def refusal(path: str, settings: Settings) -> str | None:
    """Why a raw command may not name this file or folder; None where it may."""
    try:
        allowed_file(Path(path), settings)
    except ToolError as error:
        return error.message
    return None


def transcript_file(name: str, settings: Settings) -> Path:
    """The file of a transcript that a client names. Raises ToolError, TranscriptError."""
    from watchkeeper.context.transcripts import resolve_transcript

    if name.startswith("claude-code:"):
        if settings.server.transport != "stdio":
            raise ToolError(
                "path_refused", "Sessions of Claude Code can be named over stdio only.", "Give messages, or a path."
            )
        return resolve_transcript(name)
    # Checked before it is looked for, so that nobody learns which files exist elsewhere.
    return resolve_transcript(allowed_file(Path(name), settings))


def new_file(folder: Path, stem: str, suffix: str) -> Path:
    """A name in the folder that no file has."""
    for number in range(1, 10_000):
        path = folder / f"{stem}{'' if number == 1 else f'-{number}'}{suffix}"
        if not path.exists():
            return path
    raise ToolError("too_many_files", f"{folder} is full of files called {stem}….", "Remove some.")


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on; a link in its place is not followed.

    Raises: ToolError ``cannot_write``.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)  # one that existed keeps its mode otherwise
            file.write(data)
    except OSError as error:
        raise ToolError("cannot_write", f"{path} cannot be written: {error.strerror}.", "Name another path.") from None

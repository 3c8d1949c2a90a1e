"""Files that clients may name.

Rules: only inside the allowed folders, after resolving links, whatever the tool. ``claude-code:…`` names a session of
Claude Code by its own name; only a client on this machine's stdio may use it.
"""

import os
from pathlib import Path

from .errors import ToolError
from .settings import Settings


def allowed_folders(settings: Settings) -> list[Path]:
    """Resolved; the first one is where files are written."""
    return [Path(folder).expanduser().resolve() for folder in settings.server.allowed_dirs] or [Path.cwd()]


def allowed_file(path: Path, settings: Settings) -> Path:
    """The file itself, when it lies in an allowed folder. Raises ToolError ``path_refused``."""
    resolved = path.expanduser().resolve()
    folders = allowed_folders(settings)
    if not any(resolved.is_relative_to(folder) for folder in folders):
        raise ToolError(
            "path_refused",
            f"{resolved} is outside of the allowed folders.",
            f"Allowed: {', '.join(map(str, folders))}; server.allowed_dirs sets them.",
        )
    return resolved


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
            path.chmod(0o600)
            file.write(data)
    except OSError as error:
        raise ToolError("cannot_write", f"{path} cannot be written: {error.strerror}.", "Name another path.") from None

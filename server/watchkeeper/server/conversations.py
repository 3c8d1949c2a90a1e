"""Conversations that are being compressed: their engines and where transcripts may lie.

Rules: engines are synchronous and run in a worker thread; a call that is cancelled leaves nothing half done, for an
engine's state is replaced whole. Files are read only inside the allowed folders, after resolving links.
"""

from pathlib import Path

from .errors import ToolError
from .settings import Settings


class Conversations:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    async def close(self) -> None:
        """Tell the engines that their sessions end."""


def allowed_file(path: Path, settings: Settings) -> Path:
    """The file itself, links resolved, when it lies in an allowed folder. Raises ToolError ``path_refused``."""
    resolved = path.expanduser().resolve()
    folders = [Path(folder).expanduser().resolve() for folder in settings.server.allowed_dirs] or [Path.cwd()]
    if not any(resolved.is_relative_to(folder) for folder in folders):
        raise ToolError(
            "path_refused",
            f"{resolved} is outside of the allowed folders.",
            f"Allowed: {', '.join(map(str, folders))}; server.allowed_dirs sets them.",
        )
    return resolved

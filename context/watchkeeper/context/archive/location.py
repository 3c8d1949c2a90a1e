"""Where the archive is unless a setting says otherwise: the user's data directory."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def default_location() -> Path:
    """`watchkeeper/archive.db` in `$XDG_DATA_HOME` (Linux), Application Support (macOS), `%LOCALAPPDATA%` (Windows)."""
    if sys.platform == "darwin":
        root = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        root = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return root / "watchkeeper" / "archive.db"

"""How a client is to start this installation: an absolute path and arguments.

Rules: desktop programs have a short PATH and another current folder, so nothing is left to be looked up. A path that
``uvx`` or ``pipx run`` made is temporary: the runner itself, by its absolute path, becomes the command then. Links are
not followed: ``~/.local/bin/watchkeeper`` outlives the folder that it points to.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from ... import NAME
from ...errors import ToolError

MODULE = "watchkeeper.server"
RUNNERS = ("uvx", "uv", "pipx")


@dataclass(frozen=True, slots=True)
class Launch:
    """``command`` is absolute; ``note`` is what the person should know of it."""

    command: str
    arguments: tuple[str, ...] = ()
    note: str = ""


def launch(
    argv0: str = "",
    *,
    prefix: str = sys.prefix,
    executable: str = sys.executable,
    environment: Mapping[str, str] = os.environ,
) -> Launch:
    """How this very process could be started again, by somebody who knows nothing of its surroundings.

    Raises: ToolError where a temporary environment's runner is not found.
    """
    runner = _runner(Path(prefix), environment)
    if runner:
        return _by_runner(runner, environment)
    found = _script(argv0, Path(executable))
    if found is None:
        return Launch(str(Path(executable).absolute()), ("-m", MODULE), _temporary(executable))
    return Launch(str(found), (), _temporary(str(found)))


def _script(argv0: str, executable: Path) -> Path | None:
    """The script that this was started by; None where it was ``python -m``."""
    given = Path(argv0)
    if given.name == "__main__.py":
        return None
    if given.stem == NAME:
        # A name without a path is looked up as the shell did, and never taken from the current folder.
        named = len(given.parts) > 1
        found = argv0 if named and given.is_file() else None if named or os.name == "nt" else shutil.which(argv0)
        if found:
            return Path(found).absolute()
    beside = executable.absolute().with_name(NAME + executable.suffix)
    return beside if os.access(beside, os.X_OK) and beside.is_file() else None


def _runner(prefix: Path, environment: Mapping[str, str]) -> str:
    """``uvx`` or ``pipx`` where this environment is one that they made for a single run."""
    parts = prefix.parts
    cache = environment.get("UV_CACHE_DIR")
    in_cache = cache is not None and prefix.is_relative_to(Path(cache).absolute())
    if in_cache or any(part.startswith(("archive-v", "environments-v")) for part in parts):
        return "uvx"
    if "pipx" in parts and ("cache" in parts or ".cache" in parts):
        return "pipx"
    return ""


def _by_runner(runner: str, environment: Mapping[str, str]) -> Launch:
    beside = [str(Path(environment["UV"]).with_name("uvx"))] if runner == "uvx" and environment.get("UV") else []
    found = next(filter(None, map(shutil.which, [*beside, runner])), None)
    if found is None:
        raise ToolError(
            "temporary",
            f"This runs from a temporary environment, and {runner}, which made it, is not on the PATH.",
            "Install it to stay: uv tool install watchkeeper, or pipx install watchkeeper.",
        )
    origin = _origin()
    first = () if runner == "uvx" else ("run",)
    source = ("--from" if runner == "uvx" else "--spec", origin) if origin else ()
    return Launch(
        str(Path(found).absolute()),
        (*first, *source, NAME),
        f"This environment is temporary, so the entry starts {runner}, which needs the network where its cache is "
        "empty. `uv tool install watchkeeper` makes one that stays.",
    )


def _origin() -> str:
    """Where this was installed from, if not from an index. Source: https://peps.python.org/pep-0610/"""
    try:
        told = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    url = str(told.get("url", ""))
    vcs = told.get("vcs_info", {}).get("vcs")
    return f"{vcs}+{url}" if vcs and url else url


def _temporary(path: str) -> str:
    folder = Path(tempfile.gettempdir()).resolve()
    if Path(path).absolute().is_relative_to(folder):
        return f"The command lies in {folder}, which is emptied now and then."
    return ""


def is_ours(entry: Any) -> bool:
    """Whether an entry of a client starts Watchkeeper, however it was written."""
    if not isinstance(entry, dict) or not isinstance(entry.get("command"), str):
        return False
    words = entry.get("args")
    arguments = [str(word) for word in words] if isinstance(words, list) else []
    return starts_us(entry["command"], arguments)


def starts_us(command: str, arguments: Sequence[str]) -> bool:
    """Whether this command line starts Watchkeeper."""
    stem = Path(command.replace("\\", "/")).name.casefold().removesuffix(".exe")
    if stem == NAME:
        return True
    if "-m" in arguments:
        return list(arguments[arguments.index("-m") + 1 :][:1]) == [MODULE]
    return stem in RUNNERS and any(
        word.partition("==")[0].partition("@")[0].partition("[")[0] == NAME for word in arguments
    )

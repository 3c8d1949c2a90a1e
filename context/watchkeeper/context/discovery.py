"""Finding, checking and loading context engines.

Rules:
- Exactly one engine is active: the one the setting names. Nothing is imported because it is there; listing reads
  metadata.
- `compressor` is always the built-in. Any other name is looked for in the plugin directories, in their order, then in
  those shipped with the project, then among the entry points `watchkeeper.plugins`. The first that has it is taken.
- A plugin directory holds `context_engine/<name>/` with `plugin.yaml` (name, description, version) and `__init__.py`,
  which defines one ContextEngine, or `register(ctx)` that calls `ctx.register_context_engine(engine)`.
- A name that cannot be resolved, a plugin that fails, or an engine whose own name differs is an error that says where
  was looked and what to mend. There is no falling back: to lose a chosen engine in silence is worse than not to start.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

import yaml

from watchkeeper.context.engine import ContextEngine
from watchkeeper.context.errors import EngineFailed, UnknownEngine

BUILT_IN = "compressor"
ENTRY_POINTS = "watchkeeper.plugins"
KIND = "context_engine"
_SHIPPED = Path(__file__).parent / "plugins"
_SHIPPED_PACKAGE = "watchkeeper.context.plugins"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?\Z")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_MAX_METADATA = 64 * 1024
_T = TypeVar("_T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EngineInfo:
    """What is known of an engine without importing it.

    Attributes:
        name: what the setting `context.engine` would say.
        source: where it comes from.
        location: its directory, or the entry point and its distribution.
        problem: why it could not be loaded, as far as that can be seen from outside; empty if nothing is wrong.
    """

    name: str
    description: str
    version: str
    source: Literal["built-in", "directory", "shipped", "entry point"]
    location: str
    problem: str = ""


class PluginContext:
    """What a plugin's `register(ctx)` is given.

    Attributes:
        context_length: of the model, in tokens; 0 if not known yet.
        settings: the free-form settings `context.engines.<name>`.
    """

    def __init__(self, plugin: str, context_length: int, settings: Mapping[str, Any]) -> None:
        self.context_length = context_length
        self.settings = settings
        self._plugin = plugin
        self.engine: ContextEngine | type[ContextEngine] | None = None

    def register_context_engine(self, engine: ContextEngine | type[ContextEngine]) -> bool:
        """Offer an engine, ready or as its class. One only: a second is refused with a warning, and False returned."""
        if self.engine is not None:
            _log.warning("plugin %s registers a second context engine; it is refused, one only is taken", self._plugin)
            return False
        self.engine = engine
        return True


def list_engines(directories: Sequence[Path] = ()) -> list[EngineInfo]:
    """Every engine that could be chosen, the one a name would resolve to first. Imports none of them."""
    found = [
        EngineInfo(
            BUILT_IN, "prunes, summarises and re-assembles; the default", _own_version(), "built-in", __package__
        )
    ]
    for root in directories:
        found += _in_directory(root, "directory")
    found += _in_directory(_SHIPPED, "shipped")
    for entry in _entries():
        dist = entry.dist
        about = str(dist.metadata["Summary"] or "") if dist else ""
        where = f"{entry.value} of {dist.name if dist else 'an unknown distribution'}"
        found.append(EngineInfo(entry.name, about, dist.version if dist else "", "entry point", where))
    return found


def load_engine(
    name: str,
    *,
    directories: Sequence[Path] = (),
    context_length: int = 0,
    settings: Mapping[str, Any] | None = None,
    **more: Any,
) -> ContextEngine:
    """The engine of a name, built and checked.

    Args:
        directories: the configured plugin directories, first one first.
        context_length: of the model, in tokens.
        settings: `context.engines.<name>`.
        more: what else the host has to offer (an archive, a summariser, …), for engines whose signature names it.

    Raises:
        UnknownEngine: nothing has that name.
        EngineFailed: `engine_failed`, `not_an_engine`, `engine_name_differs`, `bad_tool`.
    """
    offered = {"context_length": context_length, "settings": dict(settings or {}), **more}
    if name == BUILT_IN:
        from .engines.compressor import ContextCompressor

        return _checked(name, _built(name, ContextCompressor, offered), "the built-in engine")
    for where, found in _resolve(name, directories, offered):
        return _checked(name, found, where)
    raise _unknown(name, directories)


def check_tools(engine: ContextEngine, taken: Collection[str]) -> list[dict[str, Any]]:
    """The engine's tool schemas, if they have the right shape and no name that is taken.

    Raises:
        EngineFailed: `bad_tool`, `tool_name_taken`.
    """
    schemas = engine.get_tool_schemas()
    seen: set[str] = set()
    for schema in schemas:
        tool = schema.get("name") if isinstance(schema, Mapping) else None
        if (
            not isinstance(tool, str)
            or not _TOOL_NAME.match(tool)
            or not isinstance(schema.get("description"), str)
            or not isinstance(schema.get("parameters"), Mapping)
        ):
            raise _failed(
                "bad_tool",
                f"engine {engine.name!r} offers a tool {tool!r} that is not {{name, description, parameters}}",
                "get_tool_schemas() returns a list of these; parameters is a JSON schema",
            )
        if tool in taken or tool in seen:
            raise _failed(
                "tool_name_taken",
                f"engine {engine.name!r} offers a tool {tool!r}, but there is one of that name already",
                "rename the engine's tool, or switch the other one's toolset off",
            )
        seen.add(tool)
    return list(schemas)


# --- looking ----------------------------------------------------------------------------------------


def _resolve(name: str, directories: Sequence[Path], offered: Mapping[str, Any]) -> Iterator[tuple[str, ContextEngine]]:
    if not _NAME.match(name):
        return
    for root in (*directories, _SHIPPED):
        folder = Path(root).expanduser() / KIND / name
        if (folder / "plugin.yaml").is_file():
            yield str(folder), _from_directory(name, folder, offered, shipped=root is _SHIPPED)
    entries = _entries()
    # The entry point of that name first; only if there is none may it hide behind another's name.
    for entry in [e for e in entries if e.name == name] or entries:
        engine = _from_entry(entry, offered)
        if engine is not None and (entry.name == name or engine.name == name):
            yield f"the entry point {entry.name} ({entry.value})", engine


def _in_directory(root: Path, source: Literal["directory", "shipped"]) -> Iterator[EngineInfo]:
    folder = Path(root).expanduser() / KIND
    if not folder.is_dir():
        return
    for inside in sorted(folder.iterdir()):
        if (inside / "plugin.yaml").is_file():
            about, problem = _metadata(inside)
            if not problem and not (inside / "__init__.py").is_file():
                problem = "there is no __init__.py"
            yield EngineInfo(
                inside.name, about.get("description", ""), about.get("version", ""), source, str(inside), problem
            )


def _metadata(folder: Path) -> tuple[dict[str, str], str]:
    path = folder / "plugin.yaml"
    try:
        if path.stat().st_size > _MAX_METADATA:
            return {}, f"{path} is larger than {_MAX_METADATA:,} bytes"
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        return {}, f"{path} cannot be read: {error}"
    if not isinstance(loaded, dict):
        return {}, f"{path} is not a list of keys and values"
    about = {str(key): str(value) for key, value in loaded.items()}
    missing = [key for key in ("name", "description", "version") if not about.get(key)]
    if missing:
        return about, f"{path} lacks {', '.join(missing)}"
    if about["name"] != folder.name:
        return about, f"{path} says the name {about['name']!r}, its directory {folder.name!r}"
    return about, ""


def _entries() -> list[EntryPoint]:
    return sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (entry.name, entry.value))


# --- loading ----------------------------------------------------------------------------------------


def _from_directory(name: str, folder: Path, offered: Mapping[str, Any], *, shipped: bool) -> ContextEngine:
    _, problem = _metadata(folder)
    if problem:
        raise _failed("engine_failed", f"engine {name!r}: {problem}", "mend the file")
    module = _import_shipped(name) if shipped else _import_directory(name, folder)
    register = getattr(module, "register", None)
    if callable(register):
        engine = _registered(name, register, offered)
        if engine is None:
            raise _failed(
                "not_an_engine",
                f"register(ctx) of {folder} registers no context engine",
                "call ctx.register_context_engine(engine)",
            )
        return engine
    classes = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, ContextEngine) and value.__module__.startswith(module.__name__)
    ]
    if len(classes) != 1:
        names = ", ".join(c.__name__ for c in classes) or "none"
        raise _failed(
            "not_an_engine",
            f"{folder / '__init__.py'} must export one subclass of ContextEngine or register(ctx); it has {names}",
            "export one, or write register(ctx)",
        )
    return _built(name, classes[0], offered)


def _import_shipped(name: str) -> ModuleType:
    return _running(name, lambda: importlib.import_module(f"{_SHIPPED_PACKAGE}.{KIND}.{name}"))


def _import_directory(name: str, folder: Path) -> ModuleType:
    qualified = f"watchkeeper_plugins_{KIND}_{re.sub(r'[^A-Za-z0-9]', '_', name)}"
    spec = importlib.util.spec_from_file_location(
        qualified, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None or not (folder / "__init__.py").is_file():
        raise _failed("engine_failed", f"engine {name!r}: {folder} has no __init__.py", "add it")
    for loaded in [m for m in sys.modules if m == qualified or m.startswith(qualified + ".")]:
        del sys.modules[loaded]  # another directory's plugin of the same name
    module = importlib.util.module_from_spec(spec)
    sys.modules[qualified] = module
    loader = spec.loader
    try:
        _running(name, lambda: loader.exec_module(module))
    except EngineFailed:
        sys.modules.pop(qualified, None)
        raise
    return module


def _from_entry(entry: EntryPoint, offered: Mapping[str, Any]) -> ContextEngine | None:
    loaded = _running(entry.name, entry.load)
    if inspect.isclass(loaded) and issubclass(loaded, ContextEngine):
        return _built(entry.name, loaded, offered)
    register = loaded if callable(loaded) else getattr(loaded, "register", None)
    if not callable(register):
        raise _failed(
            "not_an_engine",
            f"the entry point {entry.name} ({entry.value}) is neither register(ctx) nor a module that has it",
            f"point it to a function register(ctx), in the group {ENTRY_POINTS}",
        )
    return _registered(entry.name, register, offered)


def _registered(
    name: str, register: Callable[[PluginContext], object], offered: Mapping[str, Any]
) -> ContextEngine | None:
    context = PluginContext(name, offered["context_length"], offered["settings"])
    _running(name, lambda: register(context))
    engine = context.engine
    return _built(name, engine, offered) if inspect.isclass(engine) else engine


def _built(name: str, engine: type[ContextEngine], offered: Mapping[str, Any]) -> ContextEngine:
    """An instance, given what its signature takes of what there is to offer."""
    parameters = inspect.signature(engine).parameters.values()
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    arguments = {k: v for k, v in offered.items() if takes_all or k in named}
    return _running(name, lambda: engine(**arguments))


def _checked(name: str, engine: ContextEngine, where: str) -> ContextEngine:
    if not isinstance(engine, ContextEngine):
        raise _failed(
            "not_an_engine",
            f"{where} gives a {type(engine).__name__}, which is no ContextEngine",
            "derive it from watchkeeper.context.engine.ContextEngine",
        )
    if engine.name != name:
        raise _failed(
            "engine_name_differs",
            f"{where} gives an engine that calls itself {engine.name!r}, not {name!r}",
            f"set context.engine to {engine.name!r}, or mend the engine's name",
        )
    check_tools(engine, ())
    return engine


def _running(name: str, step: Callable[[], _T]) -> _T:
    """Run a plugin's code; whatever it raises is told as the plugin's failure."""
    try:
        return step()
    except (Exception, SystemExit) as error:
        raise _failed(
            "engine_failed",
            f"engine {name!r} failed while it was loaded: {type(error).__name__}: {error}",
            "mend the plugin, or choose another engine with context.engine",
        ) from error


def _failed(code: str, message: str, hint: str) -> EngineFailed:
    return EngineFailed(message, hint, code=code)


def _unknown(name: str, directories: Sequence[Path]) -> UnknownEngine:
    searched = ", ".join(str(Path(root).expanduser() / KIND) for root in (*directories, _SHIPPED))
    known = ", ".join(sorted({info.name for info in list_engines(directories)}))
    return UnknownEngine(
        f"no context engine is called {name[:80]!r}; searched {searched}, and the entry points {ENTRY_POINTS}",
        f"context.engine is one of {known}; further directories are named by context.plugin_dirs",
    )


def _own_version() -> str:
    try:
        return version("watchkeeper")
    except PackageNotFoundError:  # run from a source tree
        return ""

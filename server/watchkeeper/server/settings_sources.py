"""From the command line, the environment and a file to settings, in this order of precedence.

Rules: an unknown name is an error that says the nearest one, wherever it stands; so is a variable that begins with
``WATCHKEEPER_``. All problems are told at once, each with its source. A value is never shown where it may be a secret.
"""

import difflib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from .settings import CONFIG_VARIABLE, ENV_PREFIX, Setting, Settings, all_settings, shown

DEFAULT = "default"
FREE_FORM = "context.engines"
Nested = dict[str, Any]


class SettingsError(Exception):
    """``problems``: one sentence each, for the person who starts the server."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and where each that is not a default came from, by dotted name."""

    settings: Settings
    sources: Mapping[str, str]

    def source(self, setting: Setting) -> str:
        return self.sources.get(setting.name, DEFAULT)


def load(
    options: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    config: str | os.PathLike[str] | None = None,
) -> Loaded:
    """``options``: dotted name -> text, from the command line. ``config``: a YAML file, else ``WATCHKEEPER_CONFIG``.

    Raises: SettingsError.
    """
    environment = os.environ if environment is None else environment
    config = config or environment.get(CONFIG_VARIABLE) or None
    known = {setting.name: setting for setting in all_settings()}
    problems: list[str] = []
    values: dict[str, tuple[Any, str]] = {}
    # From the weakest to the strongest: what comes later replaces what was there.
    for name, value, source in (*_of_file(config, known, problems), *_of_environment(environment), *_of(options or {})):
        found = _resolve(name, known)
        if found is None:
            problems.append(_unknown(name, source, known))
            continue
        setting, rest = found
        if isinstance(value, str) and setting.kind is dict and not rest:
            value = _mapping(setting, value, source, problems)
        if rest:
            merged = dict(values[setting.name][0]) if setting.name in values else {}
            _put(merged, rest, value)
            value = merged
        values[setting.name] = (value, source)
    if problems:
        raise SettingsError(problems)
    nested: Nested = {}
    for name, (value, _) in values.items():
        _put(nested, name.split("."), value)
    sources = {name: source for name, (_, source) in values.items()}
    try:
        return Loaded(Settings.model_validate(nested), sources)
    except ValidationError as error:
        raise SettingsError(list(_explained(error, known, values))) from None


def _of(options: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    for name, value in options.items():
        yield name, value, "command line"


def _of_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    for variable, value in sorted(environment.items()):
        # An empty variable is as if it were not set: client entries and CI cannot leave one out.
        if variable.startswith(ENV_PREFIX) and variable != CONFIG_VARIABLE and value:
            name = variable[len(ENV_PREFIX) :].lower().replace("__", ".")
            yield name, value, f"environment variable {variable}"


def _of_file(
    config: str | os.PathLike[str] | None, known: Mapping[str, Setting], problems: list[str]
) -> list[tuple[str, Any, str]]:
    if config is None:
        return []
    import yaml

    path = Path(config).expanduser()
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"The settings file {path} cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}.")
        return []
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problems.append(f"The settings file {path}{where} is not YAML: {getattr(error, 'problem', None) or 'damaged'}.")
        return []
    if content is not None and not isinstance(content, dict):
        problems.append(f"The settings file {path} holds no mapping; write it as `browser:` with keys below.")
        return []
    return list(_flat(content or {}, "", known, f"file {path}"))


def _flat(content: Nested, prefix: str, known: Mapping[str, Setting], source: str) -> Iterator[tuple[str, Any, str]]:
    for key, value in content.items():
        name = f"{prefix}{key}"
        if name in known or not isinstance(value, dict):
            yield name, value, source
        else:
            yield from _flat(value, f"{name}.", known, source)


def _resolve(name: str, known: Mapping[str, Setting]) -> tuple[Setting, list[str]] | None:
    """The setting of this name, and what follows its name where it is a mapping: ``server.auth_tokens.alice``."""
    if name in known:
        return known[name], []
    for setting in known.values():
        if setting.kind is dict and name.startswith(f"{setting.name}."):
            return setting, name[len(setting.name) + 1 :].split(".")
    return None


def _unknown(name: str, source: str, known: Mapping[str, Setting]) -> str:
    last = name.rsplit(".", 1)[-1]
    near = [other for other in known if other.rsplit(".", 1)[-1] == last][:1]
    near = near or difflib.get_close_matches(name, known, 1, 0.6)
    help = f"did you mean {near[0]}?" if near else "`watchkeeper config` lists those that exist."
    return f"Unknown setting {name} ({source}): {help}"


def _mapping(setting: Setting, text: str, source: str, problems: list[str]) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        problems.append(f"{setting.name} ({source}): expected a mapping, written as JSON.")
        return {}


def _put(target: Nested, path: list[str], value: Any) -> None:
    for part in path[:-1]:
        target = target.setdefault(part, {})
    target[path[-1]] = value


def _explained(
    error: ValidationError, known: Mapping[str, Setting], values: Mapping[str, tuple[Any, str]]
) -> Iterator[str]:
    told = set()
    for detail in error.errors(include_url=False, include_input=False):
        parts = [str(part) for part in detail["loc"]]
        name = next((".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in known), None)
        if name is None:
            # Either settings that do not go together, which the section itself says, or no section at all.
            together = detail["type"] == "value_error"
            what = f"{detail['ctx']['error']}." if together else "expected a section with settings below it."
            yield f"{'.'.join(parts)}: {what}"
            continue
        if name in told:
            continue
        told.add(name)
        setting, (value, source) = known[name], values[name]
        got = "" if setting.secret or setting.kind is dict else f", got {shown(value)!r}"
        yield f"{name} ({source}): expected {setting.expects}{got}."

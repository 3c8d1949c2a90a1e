"""What an entry says: the command, and the settings that were given with ``install``.

Rules: a setting that may be a secret goes into ``env``, never into ``args``: arguments are seen by everybody on the
machine. It stands in the client's file then, so a file that a project shares does not get it. Relative paths are made
absolute, since the client starts servers elsewhere.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import ToolError
from ...settings import ENV_PREFIX, Setting, all_settings
from .clients import Client, Machine, Scope
from .launch import Launch

PATHS = frozenset({"browser.executable", "browser.user_data_dir", "server.allowed_dirs", "context.plugin_dirs"})
HOOK_SECTIONS = ("context.", "compression.")
"""Settings that the hook reads as well."""


@dataclass(frozen=True, slots=True)
class Given:
    """The settings of the command line, as an entry has them; ``secret`` are the names of those in ``env``."""

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    secret: tuple[str, ...] = ()


def given(options: Mapping[str, str], config: str | None, machine: Machine) -> Given:
    """Raises ToolError where a setting makes no sense in an entry."""
    if options.get("server.transport", "stdio") != "stdio":
        raise ToolError("not_stdio", "Clients start Watchkeeper over stdio.", "Leave server.transport out.")
    known = {setting.name: setting for setting in all_settings()}
    arguments: list[str] = []
    environment: dict[str, str] = {}
    secret: list[str] = []
    if config is not None:
        arguments += ["--config", _absolute(config, machine)]
    for name, value in options.items():
        setting = known.get(name) or next(s for s in known.values() if name.startswith(f"{s.name}."))
        if setting.secret or _looks_secret(value):
            environment[setting.variable] = _joined(setting, name, value, environment.get(setting.variable))
            if setting.name not in secret:
                secret.append(setting.name)
        else:
            arguments += [f"--{name}", _settled(setting, value, machine)]
    return Given(tuple(arguments), environment, tuple(secret))


def _looks_secret(value: str) -> bool:
    from watchkeeper.context.redact import redact

    return redact(value) != value


def _joined(setting: Setting, name: str, value: str, earlier: str | None) -> str:
    """A mapping's variable holds all of it, since variables have no capitals that keys could have."""
    if setting.kind is not dict:
        return value
    whole: dict[str, Any] = json.loads(earlier or "{}")
    if name == setting.name:
        return json.dumps(whole | json.loads(value))
    *above, last = name.removeprefix(f"{setting.name}.").split(".")
    part = whole
    for key in above:
        part = part.setdefault(key, {})
    part[last] = value
    return json.dumps(whole)


def _settled(setting: Setting, value: str, machine: Machine) -> str:
    if setting.name not in PATHS:
        return value
    if setting.kind is tuple:
        return ",".join(_absolute(part.strip(), machine) for part in value.split(",") if part.strip())
    if setting.name == "browser.executable" and not any(sign in value for sign in "/\\"):
        return shutil.which(value) or value
    return _absolute(value, machine)


def _absolute(path: str, machine: Machine) -> str:
    return str(machine.current / Path(path).expanduser())


def for_hook(options: Mapping[str, str], config: str | None, machine: Machine) -> Given:
    """Of the settings those that the hook needs as well."""
    return given({k: v for k, v in options.items() if k.startswith(HOOK_SECTIONS)}, config, machine)


def entry(client: Client, launch: Launch, settings: Given, earlier: Any = None) -> dict[str, Any]:
    """The entry; of one that was ours before, what it has beside command, arguments and our variables stays."""
    made: dict[str, Any] = {**client.form, "command": launch.command, "args": [*launch.arguments, *settings.arguments]}
    kept = dict(earlier) if isinstance(earlier, dict) else {}
    variables = kept.get("env") if isinstance(kept.get("env"), dict) else {}
    if variables or settings.environment:
        made["env"] = {**variables, **settings.environment}  # type: ignore[dict-item]
    return {**{key: made.get(key, value) for key, value in kept.items()}, **made}


def check_shared(scope: Scope, settings: Given) -> None:
    """Raises ToolError where a secret would get into a file that a project shares."""
    if scope == "project" and settings.secret:
        names = ", ".join(settings.secret)
        variables = ", ".join(settings.environment)
        raise ToolError(
            "secret_in_project",
            f"{names} may hold a secret, and a project's file is shared with everybody who has the project.",
            f"Set {variables} where the client is started, or leave --scope project out.",
        )


def unsaid(machine: Machine) -> list[str]:
    """Variables of this shell that set something here, and will not where a client starts the server."""
    return sorted(name for name, value in machine.environment.items() if name.startswith(ENV_PREFIX) and value)

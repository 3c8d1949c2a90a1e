"""What a tool is: one declaration, from which its listing, its checks, the documentation and the bundle are made.

Rules: schemas are written by hand and short, for their price is paid in every conversation; texts that several tools
need are shared. A handler gets checked arguments and gives both forms of a result, each of which suffices alone.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..conversations import Conversations
    from ..settings import Settings, Toolset
    from ..tasks import Tasks

Json = dict[str, Any]
Arguments = Mapping[str, Any]

DEFAULT_TASK = "default"
TASK_ID: Json = {"type": "string"}
TIMEOUT: Json = {"type": "number", "minimum": 1, "maximum": 300, "description": "Seconds"}


class Progress(Protocol):
    """Tell the client how far a call is; does nothing when it did not ask."""

    async def __call__(self, done: float, total: float | None = None, message: str | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler works with. ``principal`` names the caller over HTTP with tokens, else it is empty."""

    settings: "Settings"
    tasks: "Tasks"
    conversations: "Conversations"
    principal: str
    progress: Progress


@dataclass(frozen=True, slots=True)
class Image:
    data: bytes
    mime: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """``text`` is for models, ``structured`` the same for programs; ``images`` go with either."""

    text: str
    structured: Json = field(default_factory=dict)
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Annotations:
    """Hints as MCP defines them; ``destructive`` and ``idempotent`` matter only where not ``read_only``."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = True


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """``needs``: capabilities without which the tool is not offered. ``limit``: seconds after which a call is ended
    whatever it does; the handler's own time limits are below it. ``browser``: results begin with the open dialogs.
    ``tells``: also with what happened to the task meanwhile, which then counts as told."""

    name: str
    title: str
    description: str
    properties: Json
    handler: Callable[[Call, Arguments], Awaitable[ToolResult]]
    limit: Callable[[Arguments, "Settings"], float]
    required: tuple[str, ...] = ()
    annotations: Annotations = Annotations()
    output: Json = field(default_factory=lambda: {"type": "object"})
    toolset: "Toolset" = "core"
    needs: frozenset[str] = frozenset()
    browser: bool = True
    tells: bool = True

    @property
    def input_schema(self) -> Json:
        required: Json = {"required": list(self.required)} if self.required else {}
        return {"type": "object", "properties": self.properties, **required}


CALL_MARGIN_S = 20.0
"""Above a call's own time limit, for what may come before it (starting a browser) and after."""


def call_limit(arguments: Arguments, settings: "Settings") -> float:
    """For tools with an optional ``timeout``."""
    return float(arguments.get("timeout", settings.browser.call_timeout_s)) + CALL_MARGIN_S

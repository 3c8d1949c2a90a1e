"""Watchkeeper's supervisor: one long-lived view of a browser for each task, over the Chrome DevTools Protocol.

    registry = SupervisorRegistry()
    supervisor = await registry.get_or_start("task", LocalEndpoint())
    await supervisor.navigate("http://127.0.0.1:8000/")
    supervisor.snapshot().pending_dialogs
    await registry.stop_all()

Stable: the names exported here. Everything else may change. Names load when they are first used, so that importing one
part (the errors, say) does not cost all of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backends import BrowserbaseEndpoint, CdpEndpoint, Endpoint, LocalEndpoint, find_browser
    from .blocking import BlockingRegistry, BlockingSupervisor
    from .core.dialogs import DialogPolicy
    from .core.view import Dialog, Frame, FrameTree, Tab, View
    from .dialog_answer import DialogAnswer
    from .errors import SupervisorError
    from .navigation import Navigation
    from .options import SupervisorOptions
    from .registry import SupervisorRegistry
    from .supervisor import Supervisor

_HOMES = {
    "BlockingRegistry": "blocking",
    "BlockingSupervisor": "blocking",
    "BrowserbaseEndpoint": "backends",
    "CdpEndpoint": "backends",
    "Dialog": "core.view",
    "DialogAnswer": "dialog_answer",
    "DialogPolicy": "core.dialogs",
    "Endpoint": "backends",
    "Frame": "core.view",
    "FrameTree": "core.view",
    "LocalEndpoint": "backends",
    "Navigation": "navigation",
    "Supervisor": "supervisor",
    "SupervisorError": "errors",
    "SupervisorOptions": "options",
    "SupervisorRegistry": "registry",
    "Tab": "core.view",
    "View": "core.view",
    "find_browser": "backends",
}

__all__ = [
    "BlockingRegistry",
    "BlockingSupervisor",
    "BrowserbaseEndpoint",
    "CdpEndpoint",
    "Dialog",
    "DialogAnswer",
    "DialogPolicy",
    "Endpoint",
    "Frame",
    "FrameTree",
    "LocalEndpoint",
    "Navigation",
    "Supervisor",
    "SupervisorError",
    "SupervisorOptions",
    "SupervisorRegistry",
    "Tab",
    "View",
    "find_browser",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)

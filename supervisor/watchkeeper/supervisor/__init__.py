"""Watchkeeper's supervisor: one long-lived view of a browser for each task, over the Chrome DevTools Protocol.

    registry = SupervisorRegistry()
    supervisor = await registry.get_or_start("task", LocalEndpoint())
    await supervisor.navigate("http://127.0.0.1:8000/")
    supervisor.snapshot().pending_dialogs
    await registry.stop_all()

Stable: the names exported here. Everything else may change.
"""

from .backends import CdpEndpoint, Endpoint, LocalEndpoint, find_browser
from .core.dialogs import DialogPolicy
from .core.view import Dialog, Frame, FrameTree, Tab, View
from .dialog_answer import DialogAnswer
from .errors import SupervisorError
from .navigation import Navigation
from .options import SupervisorOptions
from .registry import SupervisorRegistry
from .supervisor import Supervisor

__all__ = [
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

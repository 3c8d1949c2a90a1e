"""What the server is doing, for the resource ``watchkeeper://status``.

Rules: a principal sees its own tasks only. Looking keeps no task from ending, and waits for nothing.
"""

from typing import TYPE_CHECKING

from . import own_version
from .tools.spec import Json

if TYPE_CHECKING:
    from .dispatch import Dispatcher


def status(dispatcher: "Dispatcher", principal: str) -> Json:
    """Version and tasks: ``{version, tasks: [{task_id, connected, tabs, pending_dialogs, console_errors}]}``."""
    tasks = []
    for task_id in dispatcher.tasks.live(principal):
        supervisor = dispatcher.tasks.peek(principal, task_id)
        if supervisor is not None:
            view = supervisor.snapshot()
            tasks.append(
                {
                    "task_id": task_id,
                    "connected": view.connected,
                    "tabs": [tab.as_dict() for tab in view.tabs],
                    "pending_dialogs": len(view.pending_dialogs),
                    "console_errors": len(view.console_errors),
                }
            )
    return {"version": own_version(), "tasks": tasks}

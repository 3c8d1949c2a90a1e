"""The tool that answers dialogs."""

from .. import render
from .spec import DEFAULT_TASK, TASK_ID, Annotations, Arguments, Call, ToolResult, ToolSpec

ANSWER_LIMIT_S = 15.0


async def answer(call: Call, arguments: Arguments) -> ToolResult:
    supervisor = call.tasks.require(call.principal, arguments.get("task_id", DEFAULT_TASK))
    answered = await supervisor.answer_dialog(
        arguments["action"], arguments.get("prompt_text"), arguments.get("dialog_id")
    )
    dialog = answered.dialog
    which = f"{dialog.id}, {dialog.type} {render.quoted(dialog.message, 200)}. " if dialog else ""
    return ToolResult(f"{which}{answered.note}", answered.as_dict())


DIALOG = ToolSpec(
    name="browser_dialog",
    title="Answer a dialog",
    description="Answer an open alert, confirm, prompt or beforeunload. Results and browser_snapshot name open ones.",
    properties={
        "action": {"enum": ["accept", "dismiss"]},
        "prompt_text": {"type": "string", "description": "For a prompt; its default when left out"},
        "dialog_id": {"type": "string", "description": "Needed when several are open"},
        "task_id": TASK_ID,
    },
    required=("action",),
    handler=answer,
    limit=lambda arguments, settings: ANSWER_LIMIT_S,
    annotations=Annotations(destructive=True),
    needs=frozenset({"dialogs"}),
)

TOOLS = (DIALOG,)

"""The commands by which bridges are spoken to: take a question over, answer it, let it pass.

Rules: a page that a bridge holds goes on whatever happens; each way out of here ends in ``Debugger.resume`` or in an
answered request.
"""

from ..bridge import debugger, xhr
from . import fields
from .commands import Asked, Command, DeliverAnswer, ReadQuestion, Send
from .dialogs import Dialog, Response
from .held import Held
from .sessions import Session


def take_over(held: Held, session: Session, call_frame: fields.Object) -> Command:
    """Read the question at which a page of the debugger bridge stopped."""
    handle = fields.text(call_frame, "callFrameId")
    script_id = fields.text(fields.mapping(call_frame, "location"), "scriptId")
    frame_id = held.scripts.get((session.session_id, script_id), "")
    return Send(
        session.session_id,
        "Debugger.evaluateOnCallFrame",
        {"callFrameId": handle, "expression": debugger.HOLD, "returnByValue": True},
        ReadQuestion(session.session_id, handle, frame_id),
    )


def deliver(dialog: Dialog, response: Response) -> tuple[Command, ...]:
    """Answer a dialog that a bridge holds."""
    tag = DeliverAnswer(dialog.dialog_id)
    if dialog.via == "xhr":
        params = xhr.answer(dialog.handle, dialog.origin, response.accept, response.text)
        return (Send(dialog.session_id, "Fetch.fulfillRequest", params, tag),)
    params = {
        "callFrameId": dialog.handle,
        "expression": debugger.answer(response.accept, response.text),
        "returnByValue": True,
    }
    return (Send(dialog.session_id, "Debugger.evaluateOnCallFrame", params, tag),)


def let_go(dialog: Dialog) -> Command:
    """The answer is written: let the page go on. Not earlier, for ``resume`` overtakes what was sent before it."""
    return Send(dialog.session_id, "Debugger.resume")


def silence(asked: Asked) -> tuple[Command, ...]:
    """Let a function return its default without a dialog."""
    if asked.via == "xhr":
        return (Send(asked.session_id, "Fetch.fulfillRequest", xhr.answer(asked.handle, asked.origin, False, None)),)
    return (Send(asked.session_id, "Debugger.resume"),)

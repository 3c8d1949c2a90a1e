"""Scripts of the caller: in a frame, or on an element.

Rules: they run in the page's own world, as if the page had them; results are JSON. An element is the function's
argument; it is handed from our world to the page's as the same node.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Runtime/#method-callFunctionOn
"""

from typing import Any

from ..core import fields
from ..core.quoting import quoted
from ..errors import EvaluationFailed
from .port import PagePort
from .state import state_of
from .targets import call


async def evaluate_on(port: PagePort, function: str, ref: str, *, timeout: float | None = None) -> Any:
    """Call a JavaScript function with the element of a ref: ``(element) => element.value``.

    Raises: UnknownRef, EvaluationFailed, and what ``Supervisor.call`` raises.
    """
    target, _ = await call(port, ref, "describeNumber")
    session = target.frame.session_id
    (ours,) = await state_of(port).worlds.handles(target.frame, "elementsOf", [target.number])
    described = await port.call("DOM.describeNode", {"objectId": ours, "depth": 0}, session_id=session)
    node = fields.integer(fields.mapping(described, "node"), "backendNodeId")
    resolved = await port.call("DOM.resolveNode", {"backendNodeId": node}, session_id=session)
    element = fields.text(fields.mapping(resolved, "object"), "objectId")
    params = {
        "functionDeclaration": f"function () {{ return ({function})(this); }}",
        "objectId": element,
        "returnByValue": True,
        "awaitPromise": True,
        "userGesture": True,
    }
    result = await port.call("Runtime.callFunctionOn", params, session_id=session, timeout=timeout)
    details = fields.mapping(result, "exceptionDetails")
    if details:
        said = fields.text(fields.mapping(details, "exception"), "description") or fields.text(details, "text")
        raise EvaluationFailed(f"The script threw: {quoted(said[:2000])}.", "Mend the script; the page was not left.")
    value = fields.mapping(result, "result")
    return value.get("value", value.get("unserializableValue"))

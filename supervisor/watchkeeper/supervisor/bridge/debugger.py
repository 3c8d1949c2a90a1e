"""The debugger bridge: the page stops at a ``debugger`` statement of ours, and everything around it goes on.

Rules: a pause is ours when its innermost function bears our name; any other is resumed at once. Reading the question
marks it as held; a held question that ends without an answer (we are gone, the page navigates) gets the default one,
so that no second, native dialog opens. A page that imitates the name gains nothing that calling ``alert`` would not.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Debugger/#event-paused
"""

import json
from collections.abc import Mapping
from typing import Any

from ..core import fields
from .functions import bridged_functions
from .question import Question, question

SCRIPT_URL = "watchkeeper-bridge.js"
FUNCTION = "watchkeeperQuestion"
ASK = f"""function {FUNCTION}(type, message, fallback) {{
    let held = false, answered = false, accept = false, text = '';
    debugger;
    return answered ? {{accept, text}} : held ? {{accept: false, text: ''}} : undefined;
  }}
  const ask = {FUNCTION};"""
SCRIPT = bridged_functions(ASK) + f"//# sourceURL={SCRIPT_URL}"
HOLD = "held = true, [type, message, fallback, window.location.href]"
"""Evaluated where the page stopped: takes the question over and gives it."""


def is_ours(params: Mapping[str, Any]) -> bool:
    """Whether a ``Debugger.paused`` is a question of the bridge."""
    return fields.text(innermost(params), "functionName") == FUNCTION


def innermost(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The call frame in which a ``Debugger.paused`` stopped."""
    return next(iter(fields.items(params, "callFrames")), {})


def read(result: Mapping[str, Any]) -> Question | None:
    """The question, from the reply to ``HOLD``."""
    value = fields.mapping(result, "result").get("value")
    return question(*value) if isinstance(value, list) and len(value) == 4 else None


def answer(accept: bool, text: str | None) -> str:
    """Evaluated where the page stopped: writes the answer."""
    return f"answered = true, accept = {json.dumps(accept)}, text = {json.dumps(text or '')}"

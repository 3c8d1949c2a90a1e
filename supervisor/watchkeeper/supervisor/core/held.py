"""Pages that a bridge holds: from the moment a function of ours asks until its dialog is open.

Rules: owns which injected script runs in which frame. Before a dialog of an iframe opens, the sandbox of every iframe
above it is read: without ``allow-modals`` the function returns its default in silence, as it does natively. The page
waits meanwhile, so nothing is missed; where the sandbox cannot be read, the dialog opens.

Source: https://html.spec.whatwg.org/multipage/browsers.html#sandboxed-modals-flag
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from . import fields

SCRIPTS_CAP = 1_000


@dataclass(frozen=True, slots=True)
class Held:
    """``scripts``: (session id, script id) -> frame id, for the debugger bridge."""

    scripts: Mapping[tuple[str, str], str] = field(default_factory=dict)


def script_parsed(held: Held, session_id: str, params: Mapping[str, Any], script_url: str) -> Held:
    """``Debugger.scriptParsed``: remember in which frame a script of ours runs."""
    if fields.text(params, "url") != script_url:
        return held
    frame_id = fields.text(fields.mapping(params, "executionContextAuxData"), "frameId")
    scripts = {**held.scripts, (session_id, fields.text(params, "scriptId")): frame_id}
    if len(scripts) > SCRIPTS_CAP:
        del scripts[next(iter(scripts))]
    return replace(held, scripts=scripts)


def session_gone(held: Held, session_id: str) -> Held:
    scripts = {key: frame for key, frame in held.scripts.items() if key[0] != session_id}
    return held if len(scripts) == len(held.scripts) else replace(held, scripts=scripts)


def forbids_modals(attributes: Any) -> bool:
    """Whether the ``sandbox`` among a node's flat attribute list lacks ``allow-modals``."""
    if not isinstance(attributes, list):
        return False
    pairs = dict(zip(attributes[::2], attributes[1::2], strict=False))
    sandbox = pairs.get("sandbox")
    return isinstance(sandbox, str) and "allow-modals" not in sandbox.lower().split()

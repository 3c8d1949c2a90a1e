"""What an embedder may set, and what it hands in.

Rules: plain frozen data with working defaults; times are seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .bridge import BridgeKind
from .core.dialogs import DialogPolicy
from .core.methods import FileAccess
from .egress.policy import EgressPolicy
from .token_estimate import rough_cost


def unchanged(text: str) -> str:
    return text


BridgeChoice = Literal["auto", "debugger", "xhr", "never"]


def chosen_bridge(choice: BridgeChoice, product: str) -> BridgeKind:
    """``auto`` takes the debugger bridge where the engine is Chromium, whose debugger can hold a page."""
    if choice != "auto":
        return choice
    name = product.partition("/")[0]
    return "debugger" if name in ("Chrome", "HeadlessChrome", "Chromium", "Edg", "HeadlessEdg") else "xhr"


@dataclass(frozen=True, slots=True)
class SupervisorOptions:
    """``cost`` counts the tokens of a text; ``redact`` removes secrets from what is logged or told in errors;
    ``refuse_url`` says why a URL must not be opened, or None where it may; ``egress`` the same of what browsers that we
    start connect to (None: nothing is checked there), ``refuse_file`` the same of files that
    commands read and folders that they write to."""

    dialog_policy: DialogPolicy = "must_respond"
    dialog_timeout_s: float = 300.0
    bridge: BridgeChoice = "auto"
    call_timeout_s: float = 30.0
    launch_timeout_s: float = 30.0
    load_wait_s: float = 10.0
    """How long a navigation that has committed is waited for until it has loaded."""
    cost: Callable[[str], int] = rough_cost
    redact: Callable[[str], str] = unchanged
    idle_timeout_s: float | None = None
    """A task that nobody has used for so long is ended; None: never."""
    refuse_url: Callable[[str], str | None] = lambda url: None
    egress: EgressPolicy | None = None
    refuse_file: Callable[[str, FileAccess], str | None] = lambda path, access: None

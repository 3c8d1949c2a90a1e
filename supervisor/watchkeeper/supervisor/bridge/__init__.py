"""Dialog bridges: ways in which ``alert``, ``confirm`` and ``prompt`` reach us other than as native dialogs.

Rules: pure texts and decoders; ``core`` decides when they are used. A bridge keeps the web semantics of the three
functions, and beneath it native dialogs stay armed: where the bridge cannot hold the page, the native dialog opens.
"""

from typing import Literal

BridgeKind = Literal["never", "debugger", "xhr"]
"""``debugger``: V8 holds the page, everything else in it answers. ``xhr``: a synchronous request holds it."""

"""What an agent sees of a page and does to it.

Rules: speaks to the browser through a ``PagePort`` only, which ``Supervisor`` is.
"""

from .snapshot import PageSnapshot, take_snapshot

__all__ = ["PageSnapshot", "take_snapshot"]

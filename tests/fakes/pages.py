"""Pages and gestures that several tests need."""

from watchkeeper.supervisor import Supervisor

ASKS_BEFORE_LEAVING = """<button style='position:fixed;inset:0;width:100%'>b</button>
  <script>onbeforeunload = e => e.preventDefault()</script>"""
"""A page that wants to stay; a browser asks only once somebody has touched it."""


async def gesture(supervisor: Supervisor) -> None:
    """A real click, which lets a page ask before it is left."""
    for kind in ("mousePressed", "mouseReleased"):
        where = {"type": kind, "x": 50, "y": 50, "button": "left", "clickCount": 1}
        await supervisor.call("Input.dispatchMouseEvent", where)

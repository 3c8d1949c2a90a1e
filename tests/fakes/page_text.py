"""Reading a snapshot's text in tests."""

import re

from watchkeeper.supervisor import Supervisor
from watchkeeper.supervisor.page import take_snapshot

REF = re.compile(r"(?m:^|[ (:])((?:f\d+)?e\d+) ([\w-]+)(?: \"((?:[^\"\\]|\\.)*)\")?")


async def look(supervisor: Supervisor) -> str:
    return (await take_snapshot(supervisor, max_tokens=None)).text


def ref(text: str, name: str, role: str = r"[\w-]+") -> str:
    """The ref of the element with this name."""
    found = re.search(rf'((?:f\d+)?e\d+) {role} "{re.escape(name)}"', text)
    assert found is not None, f"no {name!r} in:\n{text}"
    return found[1]


def refs(text: str) -> dict[str, str]:
    """All refs with role and name."""
    return {found[1]: f"{found[2]} {found[3] or ''}".strip() for found in REF.finditer(text)}

"""Our tree agrees with the accessibility tree that Chromium itself builds, page by page of a corpus."""

from pathlib import Path

import pytest
from fakes import ax_tree
from fakes.site import Site

from watchkeeper.supervisor import Supervisor
from watchkeeper.supervisor.page.snapshot import read_tree
from watchkeeper.supervisor.page.state import state_of
from watchkeeper.supervisor.page.tree import Tree

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
CORPUS = Path(__file__).parent / "pages" / "tree"

KNOWN_DIFFERENCES = {
    # A role that a custom element gives itself through ElementInternals is not visible to a script: it is "clickable".
    ("shadow", ("button", "Press me", "", ())),
    # We tell the text that a slider gives for its value, Chromium the number.
    ("states", ("slider", "asl", "3", ())),
    # Text is told as it is in the document, not as text-transform paints it.
    ("mixed", ("button", "SHOUT", "", ())),
    # A choice that is required and not made is told as required, not as invalid already.
    ("mixed", ("combobox", "Country", "Choose…", ("invalid",))),
    ("mixed", ("checkbox", "I accept the terms", "", ("invalid",))),
}
OUR_DIFFERENCES = {
    ("states", ("slider", "asl", "three", ())),
    ("mixed", ("button", "shout", "", ())),
    ("mixed", ("combobox", "Country", "Choose…", ("required",))),
    ("mixed", ("checkbox", "I accept the terms", "", ("required",))),
}


@pytest.mark.parametrize("page", sorted(path.stem for path in CORPUS.glob("*.html")))
async def test_roles_names_values_and_states_are_those_of_the_accessibility_tree(
    supervisor: Supervisor, site: Site, page: str
) -> None:
    await supervisor.navigate(site.page("/", (CORPUS / f"{page}.html").read_text("utf-8")))
    top = supervisor.snapshot().frames[0]
    _, _, tree = await read_tree(supervisor, state_of(supervisor))
    _leave_frames_out(tree)
    nodes = (await supervisor.call("Accessibility.getFullAXTree", {}, frame_id=top.frame_id))["nodes"]
    expected = [item for item in ax_tree.theirs(nodes) if (page, item) not in KNOWN_DIFFERENCES]
    assert [item for item in ax_tree.ours(tree) if (page, item) not in OUR_DIFFERENCES] == expected
    said = " ".join([*tree.names, *tree.values.values()]).casefold()
    # Texts of up to two characters are left out where they stand in something that has another name.
    assert [word for word in ax_tree.their_words(nodes) if len(word) > 2 and word.casefold() not in said] == []


def _leave_frames_out(tree: Tree) -> None:
    """Chromium gives each frame a tree of its own."""
    for span in reversed(tree.spans[1:]):
        for column in (tree.depths, tree.roles, tree.refs, tree.names):
            del column[span.start : span.end]
        width = span.end - span.start
        for sparse in (tree.states, tree.values):
            moved = {i - width if i >= span.end else i: v for i, v in sparse.items() if not span.start <= i < span.end}
            sparse.clear()
            sparse.update(moved)

"""Chromium's own accessibility tree and ours in one form, so that they can be compared.

Rules: both become a list of (role, name, value, states) in reading order. Left out on both sides: generic containers,
text and text formatting (its words are compared on their own), parts of browser-made controls, empty lists, and images
that are the name of what they stand in.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from watchkeeper.supervisor.page.lines import subtree_ends
from watchkeeper.supervisor.page.tree import Tree

Item = tuple[str, str, str, tuple[str, ...]]
AX_ROLES = {
    "DisclosureTriangle": "button", "DescriptionList": "list", "Date": "date", "InputTime": "time input",
    "DateTime": "datetime", "ColorWell": "color", "Iframe": "iframe", "Canvas": "canvas", "Video": "video",
    "Audio": "audio", "PluginObject": "object", "EmbeddedObject": "object", "MathMLMath": "math",
}  # fmt: skip
OUR_ROLES = {"time": "time input", "month": "datetime", "week": "datetime", "file": "button"}
AX_FORMATTING = frozenset(
    {
        "StaticText", "InlineTextBox", "generic", "none", "paragraph", "emphasis", "strong", "code", "mark", "deletion",
        "insertion", "subscript", "superscript", "time", "Abbr", "LabelText", "Legend", "Figcaption", "caption",
        "ListMarker", "LineBreak", "MenuListPopup", "Ruby", "SvgRoot", "rowgroup", "sectionheader", "sectionfooter",
        "LayoutTable", "LayoutTableRow", "LayoutTableCell", "MathMLIdentifier", "MathMLOperator", "MathMLNumber",
        "RootWebArea", "separator",
    }
)  # fmt: skip
OUR_FORMATTING = frozenset({"", "paragraph", "clickable", "scrollable"})
OPAQUE = frozenset(
    {
        "Date", "InputTime", "DateTime", "Video", "Audio", "meter", "slider", "progressbar", "textbox", "searchbox",
        "spinbutton", "PluginObject",
    }
)  # fmt: skip
NAMED_BY_IMAGES = frozenset({"button", "link", "heading", "checkbox", "tab"})
CONTENT_NAMED = frozenset({"cell", "gridcell", "rowheader", "columnheader", "term"})
NAMELESS = frozenset({"row", "video", "audio", "table row", "math"})


def theirs(nodes: list[dict[str, Any]]) -> list[Item]:
    """From ``Accessibility.getFullAXTree``."""
    by_id = {node["nodeId"]: node for node in nodes}
    return list(_their_items(by_id, nodes[0]["nodeId"], frozenset()))


def _their_items(by_id: Mapping[str, Any], node_id: str, inside: frozenset[str]) -> Iterator[Item]:
    node = by_id.get(node_id)
    if node is None:
        return
    role = node.get("role", {}).get("value", "")
    properties = {p["name"]: p["value"].get("value") for p in node.get("properties", ())}
    name, value = node.get("name", {}).get("value", ""), node.get("value", {}).get("value", "")
    if role == "generic" and value != "":
        role = "textbox"  # an element that can be edited
    if not node.get("ignored") and not _left_out(role, name, node, inside):
        shown = AX_ROLES.get(role, role)
        if role == "generic":
            shown = "group"
        yield (
            shown,
            "" if shown in NAMELESS else _words(name),
            _value(shown, value),
            tuple(sorted(_their_states(shown, properties))),
        )
    if role in OPAQUE or (role == "textbox" and value != ""):
        return
    for child in node.get("childIds", ()):
        yield from _their_items(by_id, child, inside | {role})


def _left_out(role: str, name: str, node: Mapping[str, Any], inside: frozenset[str]) -> bool:
    if role == "generic" and name:
        return False
    if role in AX_FORMATTING:
        return not (role == "separator" and name)
    if role == "image":
        return not name or bool(inside & NAMED_BY_IMAGES)
    if role == "heading" and "link" in inside:
        return True  # its text is the link's name
    if role == "group":
        return not name and "treeitem" in inside  # arranges only
    if role == "Canvas":
        return False
    return role == "list" and not node.get("childIds")


def _their_states(role: str, properties: Mapping[str, Any]) -> Iterator[str]:
    for name in ("checked", "pressed"):
        if properties.get(name) == "true":
            yield name
        elif properties.get(name) == "mixed":
            yield f"{name}=mixed"
    if role in ("video", "audio"):
        return
    for name in ("disabled", "required", "readonly", "modal", "multiselectable", "selected", "focused"):
        if properties.get(name) is True:
            yield name
    if properties.get("invalid") not in (None, "false"):
        yield "invalid"
    if properties.get("busy"):
        yield "busy"
    if "expanded" in properties and role != "combobox":
        yield "expanded" if properties["expanded"] else "collapsed"
    if properties.get("hasPopup") not in (None, "false") and role != "combobox":
        yield f"haspopup={properties['hasPopup']}"
    if role == "heading":
        yield f"level={properties['level']}"


def ours(tree: Tree) -> list[Item]:
    """From the stitched tree."""
    ends = subtree_ends(tree.depths)
    items: list[Item] = []
    for i, role in enumerate(tree.roles):
        states = set(tree.states.get(i, "").replace("mixed", "checked=mixed").split())
        states = {s.replace("pressed=checked", "pressed") for s in states}
        if role in OUR_FORMATTING or (role == "canvas" and not tree.names[i]):
            continue
        if len(role) == 2 and role[0] == "h" and role[1].isdigit():
            states, role = states | {f"level={role[1]}"}, "heading"
        role = OUR_ROLES.get(role, role)
        name = tree.names[i]
        if role in CONTENT_NAMED and not name:
            name = " ".join(_text_of(tree, i, ends[i]))
        states = {s for s in states if not s.startswith(("current", "sort", "password", "filled", "scroll", "click"))}
        if role == "combobox":
            states -= {"expanded", "collapsed"}
        value = "" if "password" in tree.states.get(i, "") else tree.values.get(i, "")
        items.append((role, "" if role in NAMELESS else _words(name), _value(role, value), tuple(sorted(states))))
    return items


def _text_of(tree: Tree, start: int, end: int) -> Iterator[str]:
    return (tree.names[i] for i in range(start, end) if tree.names[i])


def _value(role: str, value: Any) -> str:
    if role in ("listbox", "option", "button", "status", "heading", "textbox password") or value == "No file chosen":
        return ""
    text = str(value)
    return "" if set(text) == {"•"} else _words(text)


def _words(text: str) -> str:
    return " ".join(text.split())


def their_words(nodes: list[dict[str, Any]]) -> list[str]:
    """All words of text that Chromium exposes."""
    by_id = {node["nodeId"]: node for node in nodes}
    words: list[str] = []

    def visit(node_id: str) -> None:
        node = by_id.get(node_id)
        if node is None:
            return
        role = node.get("role", {}).get("value", "")
        if not node.get("ignored") and role == "StaticText":
            words.extend(unicodedata.normalize("NFKC", node.get("name", {}).get("value", "")).split())
        if role in OPAQUE or role == "image":
            return
        for child in node.get("childIds", ()):
            visit(child)

    visit(nodes[0]["nodeId"])
    return words

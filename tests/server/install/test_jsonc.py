"""Changes to JSON with comments: what is meant changes, and nothing else does."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.server.commands.install import jsonc

KEYS = ("a", "b // c", "mcpServers", "hooks", "d e")
PATH = ("mcpServers", "ours")
VALUE = {"command": "/bin/x", "args": ["1"], "env": {}}
SCALARS = st.sampled_from(("1", "true", "null", '"a // no, /* comment"', '"\\u00e9 é"', "-1.5e3"))


@st.composite
def documents(draw: st.DrawFn) -> str:
    """An object with comments, trailing commas and white space wherever they may stand."""
    eol = draw(st.sampled_from(("\n", "\r\n")))
    blank = st.sampled_from(("", " ", eol, f"{eol}  ", " /* c , } */ ", "\t", f' // note {{"x" {eol}'))

    def value(depth: int) -> str:
        kind = draw(st.integers(0, 2)) if depth else 0
        if kind == 0:
            return draw(SCALARS)
        return members(depth) if kind == 1 else container("[", "]", [value(depth - 1) for _ in range(size())])

    def members(depth: int) -> str:
        keys = draw(st.lists(st.sampled_from(KEYS), max_size=3, unique=True))
        return container("{", "}", [f"{json.dumps(key)}{draw(blank)}:{draw(blank)}{value(depth - 1)}" for key in keys])

    def container(begin: str, end: str, parts: list[str]) -> str:
        inner = ",".join(f"{draw(blank)}{part}{draw(blank)}" for part in parts) or draw(blank)
        trailing = f",{draw(blank)}" if parts and draw(st.booleans()) else ""
        return f"{begin}{inner}{trailing}{end}"

    def size() -> int:
        return draw(st.integers(0, 3))

    return f"{draw(blank)}{members(3)}{draw(blank)}"


def copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


@given(documents())
def test_a_member_that_is_put_in_is_all_that_changes_and_taking_it_out_undoes_it(text: str) -> None:
    before = jsonc.parse(text)
    if not isinstance(before.get("mcpServers", {}), dict):
        with pytest.raises(jsonc.NotUnderstood, match="line"):
            jsonc.put(text, PATH, VALUE)
        return
    expected = copied(before)
    expected.setdefault("mcpServers", {})["ours"] = VALUE
    after = jsonc.put(text, PATH, VALUE)
    assert jsonc.parse(after) == expected
    comments = [part for part in (' // note {"x"', "/* c , } */") for _ in range(text.count(part))]
    assert all(after.count(part) == text.count(part) for part in comments)
    back = jsonc.remove(after, PATH[: jsonc.depth(text, PATH) + 1])
    assert jsonc.parse(back) == before
    assert "".join(back.split()) == "".join(text.split())


@given(documents(), st.data())
def test_any_member_and_element_can_be_removed_without_harm_to_the_others(text: str, data: st.DataObject) -> None:
    before = jsonc.parse(text)
    if not before:
        return
    key = data.draw(st.sampled_from(sorted(before)))
    assert jsonc.parse(jsonc.remove(text, [key])) == {k: v for k, v in before.items() if k != key}
    if not isinstance(before[key], list):
        return
    grown = jsonc.append(text, [key], VALUE)
    assert jsonc.parse(grown)[key] == [*before[key], VALUE]
    index = data.draw(st.integers(0, len(before[key])))
    rest = [*before[key], VALUE]
    del rest[index]
    assert jsonc.parse(jsonc.remove_element(grown, [key], index))[key] == rest


WRITTEN = """\
{
    // what the editor knows
    "inputs": [],
    "servers": {
        "other": { "command": "x" }, // theirs
    },
}
"""


def test_comments_indentation_and_trailing_commas_stay_as_they_are() -> None:
    after = jsonc.put(WRITTEN, ("servers", "ours"), {"command": "y", "args": []})
    assert after == WRITTEN.replace(
        "// theirs\n",
        '// theirs\n        "ours": {\n            "command": "y",\n            "args": []\n        },\n',
    )
    assert jsonc.remove(after, ("servers", "ours")) == WRITTEN


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{}\n",
        '{"a": 1}',
        '{ "a": 1 }\n',
        '{\n\t"a": {\n\t\t"b": []\n\t}\n}\n',
        '{\r\n  "a": 1,\r\n  "mcpServers": {}\r\n}\r\n',
        '{\n  "mcpServers": {\n    "x": {"command": "y"}\n  }\n}',
        '{\n  "mcpServers": {\n    "x": 1 // why\n    // and how\n  } // end\n}',
    ],
)
def test_usual_texts_come_back_to_the_letter(text: str) -> None:
    after = jsonc.put(text, PATH, VALUE)
    if "\r" in text:
        assert after.count("\n") == after.count("\r\n")
    assert jsonc.remove(after, PATH[: jsonc.depth(text, PATH) + 1]) == text


def test_a_value_that_is_replaced_can_be_put_back_as_it_stood() -> None:
    text = '{\n  "mcpServers": {\n    "ours": { "command": "old" /* mine */ }\n  }\n}\n'
    stood = jsonc.get(text, PATH)
    assert stood == '{ "command": "old" /* mine */ }'
    assert jsonc.put_text(jsonc.put(text, PATH, VALUE), PATH, stood) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1"),
        ("{", "line 1"),
        ('{\n"a": 1,,\n}', "line 2"),
        ('{\n"a": 1\n"b": 2}', "line 3: a comma"),
        ("{'a': 1}", "double quotes"),
        ('{"a": 1} x', "follows"),
        ('{"a": NaN2}', "line 1"),
        ("{/* open", "line 1"),
        ("[" * 200_000 + "]" * 200_000, "deeply"),
        ('{"a" 1}', "colon"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(jsonc.NotUnderstood, match=said):
        jsonc.parse(text)


@pytest.mark.parametrize("text", ["[]", '"x"', '{"mcpServers": []}', '{"mcpServers": {"ours": 1, "ours": 2}}'])
def test_an_entry_is_not_put_where_it_cannot_belong(text: str) -> None:
    with pytest.raises(jsonc.NotUnderstood):
        jsonc.put(text, PATH, VALUE)

"""Arguments that do not fit are refused in words that a model can act on, before anything runs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from watchkeeper.server.errors import ToolError
from watchkeeper.server.tools import ALL_TOOLS
from watchkeeper.server.tools.arguments import _plainly_fits, checked
from watchkeeper.server.tools.spec import ToolSpec

TOOLS = {spec.name: spec for spec in ALL_TOOLS}


def refused(tool: str, arguments: dict[str, Any]) -> ToolError:
    with pytest.raises(ToolError) as raised:
        checked(TOOLS[tool], arguments)
    return raised.value


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("browser_navigate", {}, "'url' is missing"),
        ("browser_navigate", {"ulr": "x"}, "unknown argument 'ulr' (did you mean 'url'?)"),
        ("browser_navigate", {"url": 3}, "'url' must be a string, not 3"),
        ("browser_navigate", {"url": ""}, "'url' must be not empty"),
        ("browser_navigate", {"url": "x", "timeout": 0}, "'timeout' must be from 1 to 300, not 0"),
        ("browser_navigate", {"url": "x", "timeout": "5"}, "'timeout' must be a number, not \"5\""),
        ("browser_snapshot", {"max_tokens": 1.5}, "'max_tokens' must be a whole number, not 1.5"),
        ("browser_dialog", {"action": "ok"}, "'action' must be one of 'accept', 'dismiss', not \"ok\""),
        ("browser_cdp", {"method": "A.b", "params": "x"}, "'params' must be an object, not \"x\""),
        ("browser_navigate", {"url": "x", "timeout": float("nan")}, "'timeout' must be JSON"),
        ("browser_navigate", {"url": "x", "timeout": float("inf")}, "'timeout' must be JSON"),
        ("browser_cdp", {"method": "A.b", "params": {"x": [float("nan")]}}, "'params' must be JSON"),
        ("browser_snapshot", {"task_id": "x" * 65}, "'task_id' must be 1 to 64 characters"),
        ("browser_snapshot", {"task_id": ""}, "'task_id' must be 1 to 64 characters"),
        ("browser_cdp", {"method": "A.b", "params": [1]}, "'params' must be an object, not [1]"),
    ],
)
def test_the_problem_is_named(tool: str, arguments: dict[str, Any], said: str) -> None:
    error = refused(tool, arguments)
    assert error.code == "invalid_arguments"
    assert said in error.message
    assert "Nothing was done" in error.message
    assert "http" not in error.message


def test_all_problems_are_told_at_once_and_values_are_cut() -> None:
    error = refused("browser_dialog", {"action": "x" * 10_000, "promt_text": "a"})
    assert "'promt_text' (did you mean 'prompt_text'?)" in error.message
    assert "'action' must be one of" in error.message
    assert len(error.message) < 400


def test_an_object_that_a_client_sends_as_its_json_is_taken() -> None:
    given_arguments = checked(TOOLS["browser_cdp"], {"method": "A.b", "params": '{"expression": "1"}'})
    assert given_arguments["params"] == {"expression": "1"}


def test_no_arguments_at_all_are_fine_where_none_is_required() -> None:
    assert checked(TOOLS["browser_snapshot"], None) == {}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(ALL_TOOLS),
    st.dictionaries(
        st.sampled_from(sorted({name for spec in ALL_TOOLS for name in spec.properties})) | st.text(max_size=8),
        json_values,
    ),
)
def test_whatever_is_given_is_taken_or_refused_with_the_one_code(spec: ToolSpec, arguments: dict[str, Any]) -> None:
    try:
        taken = checked(spec, arguments)
    except ToolError as error:
        assert error.code == "invalid_arguments"
        assert len(error.message) < 5_000
    else:
        assert set(taken) <= set(spec.properties)
        assert set(spec.required) <= set(taken)
        json.dumps(taken)


def test_what_is_let_through_without_the_library_is_what_the_library_lets_through() -> None:
    values = ["", "a", "x" * 70_000, "must_respond", True, False, 0, 1, 30, 30.0, 0.5, -1, 301, 10**9, None, [], {}]
    schemas = [schema for spec in ALL_TOOLS for schema in spec.properties.values()]
    judged = [
        (schema, value)
        for schema in [*schemas, {"enum": ["1"]}, {"enum": [1]}, {"type": "string", "enum": ["a"]}, {}]
        for value in values
        if _plainly_fits(schema, value)
    ]
    assert len(judged) > 100
    assert [pair for pair in judged if not Draft202012Validator(pair[0]).is_valid(pair[1])] == []

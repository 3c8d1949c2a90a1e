"""Message lists of the right shape and of every oddity within it, for hypothesis."""

import json
from typing import Any

from hypothesis import strategies as st

IDS = ("a", "b", "c", "toolu_1", "call_2")
WORDS = (
    "fix src/app/main.py:42",
    "错误 0x80070005 出现了",
    "Ошибка №404",
    "v1.2.3",
    "ok",
    "\n",
    " ",
    "",
    "\t \n",
    "{}",
    "\u00a0",
)

text = st.one_of(
    st.sampled_from(WORDS),
    st.text(max_size=12),
    st.lists(st.sampled_from(WORDS), min_size=4, max_size=30).map(" ".join),
    st.lists(st.sampled_from(WORDS), min_size=4, max_size=30).map("\n".join),
)
cache_control = st.just({"type": "ephemeral"})


def part() -> st.SearchStrategy[Any]:
    return st.one_of(
        text,
        st.fixed_dictionaries({"type": st.just("text"), "text": text}, optional={"cache_control": cache_control}),
        st.fixed_dictionaries({"text": text}),
        st.fixed_dictionaries({"type": st.just("text")}),
        st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}),
        st.fixed_dictionaries(
            {"type": st.just("thinking"), "thinking": text, "signature": st.just("c2lnbmVk")},
            optional={"cache_control": cache_control},
        ),
        st.just({"type": "redacted_thinking", "data": "b3BhcXVl"}),
        st.just({"type": "refusal", "refusal": "I will not."}),
        st.just({"type": "unheard_of", "payload": [1, {"x": None}]}),
    )


content = st.one_of(st.none(), text, st.lists(part(), max_size=4), st.lists(part(), max_size=2).map(tuple))
arguments = st.one_of(
    st.none(),
    st.just({}),
    st.just({"path": "src/a.py", "n": 3}),
    st.sampled_from(["", "{}", '{"path": "src/a.py"}', "[1, 2]", "null", "NaN", '{"x": NaN}', '{"cut": "off', "plain"]),
    text,
)


def call() -> st.SearchStrategy[dict[str, Any]]:
    function = st.fixed_dictionaries({"name": st.sampled_from(["read", "run"])}, optional={"arguments": arguments})
    return st.one_of(
        st.fixed_dictionaries(
            {"id": st.sampled_from(IDS), "type": st.just("function"), "function": function},
            optional={"extra_content": st.just({"google": {"thought_signature": "c2ln"}})},
        ),
        st.fixed_dictionaries(
            {
                "id": st.sampled_from(IDS),
                "type": st.just("custom"),
                "custom": st.fixed_dictionaries({"name": st.just("patch"), "input": text}),
            }
        ),
    )


message = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "developer"]), "content": content}),
    st.fixed_dictionaries({"role": st.just("user"), "content": content}, optional={"name": st.just("ann")}),
    st.fixed_dictionaries(
        {"role": st.just("assistant")},
        optional={
            "content": content,
            "tool_calls": st.one_of(st.none(), st.lists(call(), max_size=3)),
            "refusal": st.one_of(st.none(), text),
        },
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": st.sampled_from(IDS), "content": content}),
)

anything = st.lists(message, min_size=1, max_size=14)
"""Any list of messages of the right shape."""


@st.composite
def agent_runs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A list in order: a person asks, an agent calls tools and answers; the last calls may still be running."""
    out: list[dict[str, Any]] = []
    if draw(st.booleans()):
        out.append({"role": draw(st.sampled_from(["system", "developer"])), "content": "You are an agent."})
    number = 0
    said = text.filter(lambda t: bool(t.strip())).map(str.strip)
    for _ in range(draw(st.integers(1, 4))):
        out.append({"role": "user", "content": draw(said)})
        for _ in range(draw(st.integers(0, 4))):
            calls = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                function = {"name": "read", "arguments": json.dumps({"path": f"src/a{number}.py"})}
                calls.append({"id": f"id{number}", "type": "function", "function": function})
            thinking = [{"type": "thinking", "thinking": "hm", "signature": f"sig{number}"}]
            spoken = draw(st.sampled_from([None, "Reading.", thinking]))
            out.append({"role": "assistant", "content": spoken, "tool_calls": calls})
            for c in calls:
                output = draw(said) * draw(st.sampled_from([1, 1, 40]))
                out.append({"role": "tool", "tool_call_id": c["id"], "content": output})
        out.append({"role": "assistant", "content": draw(said)})
    ending = draw(st.integers(0, 3))
    if ending == 1 and out[-2]["role"] == "tool":
        out.pop()
    elif ending == 2:
        out.append({"role": "user", "content": draw(said)})
        function = {"name": "run", "arguments": "{}"}
        calls = [{"id": f"live{n}", "type": "function", "function": function} for n in range(draw(st.integers(1, 2)))]
        out.append({"role": "assistant", "content": None, "tool_calls": calls})
    return out

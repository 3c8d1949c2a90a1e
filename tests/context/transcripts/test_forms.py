"""Each form comes in as OpenAI messages and goes out as it was."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.context.transcripts import TranscriptError, dump_transcript, load_transcript
from watchkeeper.context.transcripts.anthropic import from_anthropic, to_anthropic

OPENAI = [
    {"role": "developer", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "ищи 文件"}, {"type": "image_url", "image_url": {"url": "x"}}],
    },
    {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"q":1}'}}],
    },
    {"role": "tool", "tool_call_id": "a", "content": "cut in an emoji \ud83d", "vendor_key": {"kept": True}},
]

ANTHROPIC = {
    "model": "claude-x",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "id": "msg_1",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig=="},
                {"type": "text", "text": "first", "citations": []},
                {
                    "type": "tool_use",
                    "id": "t1",
                    "name": "look",
                    "input": {"x": [1, "é"]},
                    "caller": {"type": "direct"},
                },
                {"type": "text", "text": "and"},
                {"type": "tool_use", "id": "t2", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "note": "kept",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "one", "is_error": True},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": [
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
                            "cache_control": {"type": "ephemeral"},
                        }
                    ],
                },
                {"type": "text", "text": "what next?"},
                {"type": "made_up_block", "anything": 1},
            ],
        },
    ],
}


def test_an_openai_document_and_its_lines_come_back_equal_with_unknown_fields(tmp_path):
    document = {"model": "m", "tools": [{"t": 1}], "messages": OPENAI}
    (tmp_path / "a.json").write_text(json.dumps(document))
    read = load_transcript(tmp_path / "a.json")
    assert (read.messages, read.form, read.problems) == (OPENAI, "openai", ())
    dump_transcript(read.messages, tmp_path / "b.json", "openai", like=read)
    assert json.loads((tmp_path / "b.json").read_text()) == document

    dump_transcript(OPENAI, tmp_path / "c.jsonl", "openai-jsonl")
    again = load_transcript(tmp_path / "c.jsonl")
    assert (again.messages, again.form) == (OPENAI, "openai-jsonl")
    assert (tmp_path / "c.jsonl").stat().st_mode & 0o077 == 0


def test_anthropic_calls_results_and_images_become_openai_ones_and_everything_comes_back(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(ANTHROPIC))
    read = load_transcript(tmp_path / "a.json")
    assert read.form == "anthropic"
    assert [m["role"] for m in read.messages] == ["system", "user", "assistant", "tool", "tool", "user"]
    assistant = read.messages[2]
    assert [c["function"] for c in assistant["tool_calls"]] == [
        {"name": "look", "arguments": '{"x": [1, "é"]}'},
        {"name": "look", "arguments": "{}"},
    ]
    assert assistant["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "sig=="}
    assert read.messages[3]["is_error"] is True
    assert read.messages[4]["content"][0]["image_url"] == {"url": "data:image/png;base64,aGk="}
    dump_transcript(read.messages, tmp_path / "b.json", "anthropic", like=read)
    assert json.loads((tmp_path / "b.json").read_text()) == ANTHROPIC


def test_openai_messages_become_valid_anthropic_turns():
    system, turns = to_anthropic(
        [
            *OPENAI,
            {"role": "user", "content": "and this"},
            {"role": "assistant", "content": "ok", "tool_calls": [
                {"id": "b", "type": "function", "function": {"name": "g", "arguments": "not json"}}]},
        ]
    )  # fmt: skip
    assert system == "Be brief."
    assert [t["role"] for t in turns] == ["user", "assistant", "user", "assistant"]
    assert [b["type"] for b in turns[2]["content"]] == ["tool_result", "text"]
    assert turns[3]["content"][1]["input"] == {"arguments": "not json"}


_text = st.fixed_dictionaries({"type": st.just("text"), "text": st.text(min_size=1)})
_odd = st.fixed_dictionaries({"type": st.sampled_from(["thinking", "document", "x"]), "data": st.integers()})
_use = st.fixed_dictionaries(
    {
        "type": st.just("tool_use"),
        "id": st.text(min_size=1),
        "name": st.text(),
        "input": st.dictionaries(st.text(), st.floats(allow_nan=False)),
    }
)
_result = st.fixed_dictionaries(
    {"type": st.just("tool_result"), "tool_use_id": st.text(), "content": st.text() | st.lists(_text, min_size=1)},
    optional={"is_error": st.booleans()},
)


@given(
    st.lists(st.lists(_text | _odd | _use, min_size=1), max_size=4),
    st.lists(st.tuples(st.lists(_result), st.lists(_text | _odd)).filter(any), min_size=4, max_size=4),
)
def test_any_alternating_anthropic_conversation_survives_the_round_trip(assistants, users):
    turns = []
    for said, (results, text) in zip(assistants, users, strict=False):
        turns += [{"role": "user", "content": results + text}, {"role": "assistant", "content": said, "extra": 1}]
    _, back = to_anthropic(m for t in turns for m in from_anthropic(t))
    assert back == turns


def test_the_name_of_a_form_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(TranscriptError, match="unknown transcript form 'word'"):
        dump_transcript(OPENAI, tmp_path / "x", "word")
    assert not list(tmp_path.iterdir())

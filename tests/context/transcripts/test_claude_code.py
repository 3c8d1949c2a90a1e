"""Claude Code session files: the conversation in the tree, in and out."""

import json
import os
from itertools import pairwise

import pytest

from watchkeeper.context.transcripts import TranscriptError, dump_transcript, load_transcript


def line(uuid, parent, kind, message=None, **more):
    base = {"parentUuid": parent, "isSidechain": False, "sessionId": "s", "type": kind, "uuid": uuid, **more}
    return base if message is None else {**base, "message": message}


def user(text):
    return {"role": "user", "content": text}


def says(message_id, *blocks):
    return {
        "role": "assistant",
        "id": message_id,
        "model": "claude-x",
        "content": list(blocks),
        "usage": {"input_tokens": 1},
    }


def text(value):
    return {"type": "text", "text": value}


def use(call):
    return {"type": "tool_use", "id": call, "name": "Read", "input": {"p": call}}


def result(call):
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": f"result {call}"}]}


LINES = [
    {"type": "summary", "summary": "an earlier title", "leafUuid": "zz"},
    line("u1", None, "user", user("first request"), cwd="/w", gitBranch="main", version="9"),
    line("x1", "u1", "assistant", says("m0", text("abandoned answer"))),
    line("x2", "x1", "user", user("abandoned follow-up")),
    line("s1", None, "user", user("side chain"), isSidechain=True) | {"isSidechain": True},
    line("a1", "u1", "assistant", says("m1", {"type": "thinking", "thinking": "t", "signature": "s"})),
    line("a2", "a1", "assistant", says("m1", use("c1"))),
    line("r1", "a2", "user", result("c1"), toolUseResult={"big": "copy"}),
    line("a3", "a2", "assistant", says("m1", use("c2"))),
    line("r2", "a3", "user", result("c2")),
    line("q", "r2", "attachment", attachment={"type": "queued_command", "prompt": "typed meanwhile"}),
    line("f", "q", "attachment", attachment={"type": "other"}),
    line("a4", "f", "assistant", says("m2", text("done"))),
]


def write(path, lines):
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))
    return path


def said(messages):
    return [m["content"] if isinstance(m["content"], str) else m["role"] for m in messages]


def test_the_path_to_the_last_line_is_read_with_parallel_results_and_words_typed_meanwhile(tmp_path):
    read = load_transcript(write(tmp_path / "s.jsonl", LINES))
    assert read.form == "claude-code"
    assert said(read.messages) == [
        "first request",
        "assistant",
        "result c1",
        "result c2",
        "typed meanwhile",
        "assistant",
    ]
    answer = read.messages[1]
    assert answer["content"] == [{"type": "thinking", "thinking": "t", "signature": "s"}]
    assert [c["id"] for c in answer["tool_calls"]] == ["c1", "c2"]
    assert answer["usage"] == {"input_tokens": 1}


def test_an_unchanged_session_is_given_back_line_for_line(tmp_path):
    read = load_transcript(write(tmp_path / "s.jsonl", LINES), keep_origin=True)
    dump_transcript(read.messages, tmp_path / "t.jsonl", "claude-code", like=read)
    assert [json.loads(x) for x in (tmp_path / "t.jsonl").read_text().splitlines()] == LINES


def test_a_shortened_session_is_one_chain_of_old_and_new_lines_and_reads_back(tmp_path):
    read = load_transcript(write(tmp_path / "s.jsonl", LINES), keep_origin=True)
    stub = {**read.messages[3], "content": "[stub]"}
    shorter = [
        {"role": "system", "content": "s"},
        user("summary"),
        read.messages[1],
        read.messages[2],
        stub,
        *read.messages[4:],
    ]
    notes = dump_transcript(shorter, tmp_path / "t.jsonl", "claude-code", like=read, timestamp="2026-01-01T00:00:00Z")
    assert "1 system message" in str(notes[0])
    lines = [json.loads(x) for x in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert all(b["parentUuid"] == a["uuid"] for a, b in pairwise(lines) if b["uuid"] not in ("r1", "a3"))
    assert {x["sessionId"] for x in lines} == {"s"}
    assert lines[0]["cwd"] == "/w"
    again = load_transcript(tmp_path / "t.jsonl")
    assert said(again.messages) == ["summary", "assistant", "result c1", "[stub]", "typed meanwhile", "assistant"]


def test_a_damaged_line_costs_that_line_only(tmp_path):
    lines = [json.dumps(x) for x in LINES]
    lines[5] = lines[5][:40]  # a1: the parent of what follows
    read = load_transcript(write(tmp_path / "s.jsonl", lines))
    assert "first request" in said(read.messages)
    assert [c["id"] for m in read.messages for c in m.get("tool_calls", ())] == ["c1", "c2"]
    assert [p.line for p in read.problems] == [6]


def test_a_compaction_inside_the_file_does_not_hide_the_originals(tmp_path):
    after = [
        line("b", None, "system", subtype="compact_boundary", logicalParentUuid="a4"),
        line("k", "b", "user", user("a summary of it all"), isCompactSummary=True),
        line("u9", "k", "user", user("go on")),
    ]
    whole = load_transcript(write(tmp_path / "s.jsonl", LINES + after))
    assert said(whole.messages)[0] == "first request"
    assert said(whole.messages)[-1] == "go on"
    assert "a summary of it all" not in said(whole.messages)
    rest = load_transcript(write(tmp_path / "s.jsonl", after))
    assert said(rest.messages) == ["a summary of it all", "go on"]


def test_latest_and_an_id_find_the_session_file(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    with pytest.raises(TranscriptError, match=r"no Claude Code session 'latest' in .*projects"):
        load_transcript("claude-code:latest")
    folder = tmp_path / "projects" / "-w"
    folder.mkdir(parents=True)
    for age, name in enumerate(["new", "old", "agent-1"]):
        write(folder / f"{name}.jsonl", [line("u", None, "user", user(name))])
        os.utime(
            folder / f"{name}.jsonl",
            (1000 + (50 if name == "agent-1" else -age), 1000 + (50 if name == "agent-1" else -age)),
        )
    assert said(load_transcript("claude-code:latest").messages) == ["new"]
    assert said(load_transcript("claude-code:old").messages) == ["old"]

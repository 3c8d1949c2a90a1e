"""The handles that the default compressor leaves behind find what they promise."""

import json
import re

import pytest

from watchkeeper.context import ContextCompressor
from watchkeeper.context.archive import ArchiveTools, open_archive
from watchkeeper.context.testing import conversation
from watchkeeper.context.tokens import estimate

HANDLE = re.compile(r"in the archive as (m\d+)")


@pytest.fixture
def archive(tmp_path):
    opened = open_archive(tmp_path / "archive.db")
    yield opened
    opened.close()


def expanded(archive, handle):
    answer = json.loads(
        ArchiveTools(archive, lambda: "s", estimate, prefix="archive").call(
            "archive_expand", {"id": handle, "max_tokens": 20_000}
        )
    )
    return answer["messages"][0]["message"]


@pytest.mark.parametrize("mode", ["legacy", "lean"])
def test_every_handle_expands_to_the_whole_of_the_result_it_stands_for(archive, mode):
    engine = ContextCompressor(20_000, {"tail_mode": mode}, archive=archive, recall="archive_grep finds the originals.")
    engine.on_session_start("s")
    messages = conversation(60, output=2_000)
    original = {m["tool_call_id"]: m for m in messages if m["role"] == "tool"}
    out = messages
    for _ in range(2):
        out = engine.compress(out, force=True)
        stubs = [m for m in out if m["role"] == "tool" and HANDLE.search(str(m["content"]))]
        for stub in stubs:
            assert expanded(archive, HANDLE.search(stub["content"])[1]) == original[stub["tool_call_id"]]
    assert any("archive_grep" in str(m["content"]) for m in out)
    assert {json.dumps(m) for m in messages} <= {json.dumps(s.message()) for s in archive.store.messages("s")}


def test_pruning_leaves_handles_that_expand(archive):
    engine = ContextCompressor(60_000, archive=archive)
    engine.on_session_start("s")
    messages = conversation(40, output=12_000)
    original = {m["tool_call_id"]: m for m in messages if m["role"] == "tool"}
    out, cleared = engine.prune_tool_results_only(messages)
    stubs = [m for m in out if m["role"] == "tool" and m["content"] != original[m["tool_call_id"]]["content"]]
    assert cleared == len(stubs) > 0
    for stub in stubs:
        assert expanded(archive, HANDLE.search(stub["content"])[1]) == original[stub["tool_call_id"]]


def test_what_the_summary_lost_is_found_by_words_around_it(archive):
    engine = ContextCompressor(20_000, archive=archive)
    engine.on_session_start("s")
    out = engine.compress(conversation(60, output=2_000), force=True)
    shown = json.dumps(out)
    lost = next(n for n in range(60) if f"'E4{n:03d}'" not in shown)
    hits = archive.search(f"reading part {lost}, step_{lost} order raise", session="s").hits
    assert any(f"E4{lost:03d}" in hit.text for hit in hits)

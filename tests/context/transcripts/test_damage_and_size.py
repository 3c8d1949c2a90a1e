"""A damaged file costs what is damaged; a large one costs its largest message."""

import json
import tracemalloc

import pytest

from watchkeeper.context.transcripts import TranscriptError, load_transcript, read_transcript
from watchkeeper.context.transcripts.reading import lines


def test_a_bad_line_is_named_by_its_number_and_the_rest_is_read(tmp_path):
    path = tmp_path / "x.jsonl"
    good = json.dumps({"role": "user", "content": "hello"}).encode()
    path.write_bytes(
        b"\xef\xbb\xbf" + good + b"\r\n\n{broken\n" + b"[1]\n" + b'{"role": 3}\n'
        b'{"role": "user", "content": "caf\xe9"}\n' + good[:-3]
    )
    read = load_transcript(path)
    assert [m["content"] for m in read.messages] == ["hello", "caf\ufffd"]
    assert [p.line for p in read.problems] == [3, 4, 5, 6, 7]
    assert str(read.problems[0]).startswith("line 3: not JSON")


@pytest.mark.parametrize(
    ("tail", "line", "reason"),
    [
        ('{"role": "user", "cont', 4, "ends too early"),
        ('{"role": oops}\n]', 4, "not JSON"),
        ("", 4, "ends too early"),
    ],
)
def test_a_document_that_breaks_keeps_what_came_before_and_names_the_line(tmp_path, tail, line, reason):
    path = tmp_path / "x.json"
    path.write_text('[\n{"role": "user", "content": "a"},\n{"role": "user", "content": "b"},\n' + tail)
    read = load_transcript(path)
    assert [m["content"] for m in read.messages] == ["a", "b"]
    assert (read.problems[0].line, reason in read.problems[0].message) == (line, True), read.problems


def test_a_line_beyond_the_cap_is_named_and_passed_over(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": "' + "x" * 1000 + '"}\n{"a": 2}\n')
    problems = []
    with path.open("rb") as stream:
        assert list(lines(stream, problems.append, max_line=100)) == [(2, {"a": 2})]
    assert "longer than 100 bytes" in str(problems[0])


@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
def test_a_file_of_a_hundred_megabytes_is_streamed_in_bounded_memory(tmp_path, name):
    path = tmp_path / name
    body = "line of a tool result\\n" * 4500
    with path.open("w") as stream:
        stream.write("" if name == "x.jsonl" else '{"model": "m", "messages": [\n')
        for at in range(1000):
            comma = "" if name == "x.jsonl" or at == 999 else ","
            stream.write(f'{{"role": "user", "content": "{at} {body}"}}{comma}\n')
        stream.write("" if name == "x.jsonl" else "]}")
    assert path.stat().st_size > 100_000_000
    problems = []
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_transcript(path, problems.append))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (count, problems) == (1000, [])
    assert peak < 8_000_000


def test_a_large_element_across_many_chunks_is_whole(tmp_path):
    path = tmp_path / "x.json"
    content = 'é"\\\n' * 400_000
    path.write_text(json.dumps({"messages": [{"role": "user", "content": content, "n": 123456}], "n": 1.5}))
    read = load_transcript(path)
    assert read.messages == [{"role": "user", "content": content, "n": 123456}]
    assert (read.extra, read.problems) == ({"n": 1.5}, ())


@pytest.mark.parametrize("content", ["", "just words", "{}", "[]", '{"messages": 3}'])
def test_a_file_without_messages_is_refused_with_the_forms_that_are_read(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(TranscriptError) as caught:
        load_transcript(path)
    assert caught.value.code == "no_messages"
    assert "Claude Code" in caught.value.hint


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(TranscriptError, match="does not exist"):
        load_transcript(tmp_path / "none.json")

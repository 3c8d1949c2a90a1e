"""A damaged file costs what is damaged; a large one costs its largest message."""

import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.context.transcripts import TranscriptError, load_transcript, read_transcript, reading
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


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.lists(_values, max_size=5), st.dictionaries(st.text(min_size=1), _values, max_size=3), st.integers(1, 40))
def test_streaming_a_document_gives_what_reading_it_whole_gives(elements, around, chunk):
    around.pop("messages", None)
    document = json.dumps({**around, "messages": elements}, ensure_ascii=chunk % 2 == 0, indent=chunk % 3 or None)
    raw = document.encode("utf-8", "surrogatepass") if chunk % 2 == 0 else document.encode("utf-8", "replace")
    wanted = json.loads(raw)
    problems, found, keys = [], [], {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_CHUNK", chunk)
        for _, key, value in reading.document(io.BytesIO(raw), problems.append):
            if key is None:
                found.append(value)
            else:
                keys[key] = value
    assert (problems, found) == ([], wanted.pop("messages"))
    assert keys == wanted


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "session.jsonl"])
def test_a_file_of_a_hundred_megabytes_is_streamed_in_bounded_memory(tmp_path, name):
    path = tmp_path / name
    body = "line of a tool result\\n" * 4500
    with path.open("w") as stream:
        stream.write('{"model": "m", "messages": [\n' if name == "x.json" else "")
        for at in range(1000):
            message = f'{{"role": "user", "content": "{at} {body}"}}'
            if name == "session.jsonl":
                parent = f'"u{at - 1}"' if at else "null"
                message = f'{{"type": "user", "uuid": "u{at}", "parentUuid": {parent}, "message": {message}}}'
            stream.write(message + ("," if name == "x.json" and at < 999 else "") + "\n")
        stream.write("]}" if name == "x.json" else "")
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

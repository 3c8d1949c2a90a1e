"""What the archive promises, on each store."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchkeeper.context.archive import Archive
from watchkeeper.context.store import ArchiveError, Node


def call(call_id, name, **arguments):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


TALK = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Why does the login page time out? Ответьте по-русски, пожалуйста"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            call("a", "read_file", path="src/auth/session_store.py", limit=40),
            call(
                "b", "write_file", path="notes.md", body="The lease expires too early.\n" * 60 + "see ticket AUTH-417"
            ),
        ],
    },
    {
        "role": "tool",
        "tool_call_id": "a",
        "content": "LEASE_SECONDS = 30\n" + "x = 1\n" * 900 + "def renew_lease(now): ...",
    },
    {"role": "tool", "tool_call_id": "b", "content": "ok"},
    {"role": "assistant", "content": "租约在三十秒后过期，所以登录超时。Аренда истекала слишком рано."},
    {"role": "user", "content": "ok"},
    {"role": "assistant", "content": "cut in an emoji \ud83d, and a NUL \x00", "vendor": {"z": 1, "a": [1.5, None]}},
    {"role": "user", "content": "ok"},
]


def count(text):
    return len(text) // 4


def originals(archive, handle, max_tokens=1000):
    """What expanding gives, page by page, put together again."""
    out, part, cursor = [], "", ""
    while True:
        page = archive.expand(handle, max_tokens=max_tokens, count=count, cursor=cursor)
        out += [message for _, message in page.messages]
        if page.part:
            part += page.part[1]
            if not page.next or page.next.endswith(":0"):
                out.append(json.loads(part))
                part = ""
        if not page.next:
            return out
        cursor = page.next


def test_originals_come_back_equal_in_order_whatever_they_hold(archive):
    assert archive.record("s", TALK) == list(range(9))
    handles = archive.handles("s")
    for position, message in enumerate(TALK):
        (back,) = originals(archive, handles[position], max_tokens=100)
        assert json.dumps(back) == json.dumps(message)


def test_recording_again_adds_only_what_is_new(archive):
    archive.record("s", TALK[:5])
    assert archive.record("s", TALK) == list(range(9))
    shortened = [
        TALK[0],
        TALK[1],
        {"role": "user", "content": "a summary"},
        *TALK[6:],
        {"role": "user", "content": "more"},
    ]
    assert archive.record("s", shortened) == [0, 1, 9, 6, 7, 8, 10]
    assert archive.record("other", TALK[:1]) == [0]


def test_a_message_that_is_not_json_is_refused_and_nothing_is_archived(archive):
    with pytest.raises(ArchiveError, match="message 1 cannot be written as JSON"):
        archive.record("s", [TALK[0], {"role": "user", "content": object()}])
    assert archive.sessions() == []


@pytest.mark.parametrize(
    ("question", "position"),
    [
        ("what does renew lease do, def renew_lease", 3),
        ("session_store.py", 2),
        ("which ticket about the lease expiring, AUTH-417", 2),
        ("登录超时", 5),
        ("аренду", 5),
        ("ПОЖАЛУЙСТА", 1),
    ],
)
def test_search_finds_words_of_contents_and_of_arguments_in_any_script(archive, question, position):
    archive.record("s", TALK)
    archive.record("other", [{"role": "user", "content": "session_store.py, lease, 登录超时 elsewhere"}])
    found = archive.search(question, session="s")
    assert found.hits[0].position == position
    assert {hit.session for hit in found.hits} == {"s"}


def test_a_hit_says_which_call_it_belongs_to_and_its_handle_expands_to_it(archive):
    archive.record("s", TALK)
    hit = next(h for h in archive.search("renew_lease", session="s").hits if h.role == "tool")
    assert hit.head == "read_file src/auth/session_store.py 40"
    assert "def renew_lease(now)" in hit.text
    assert originals(archive, hit.handle) == [TALK[3]]


def test_search_is_paged_and_says_when_there_is_more(archive):
    archive.record("s", [{"role": "user", "content": f"needle number{n} straw{n} hay{n}"} for n in range(12)])
    seen, offset = [], 0
    while True:
        found = archive.search("needle", session="s", limit=5, offset=offset)
        seen += [h.position for h in found.hits]
        offset += 5
        if not found.more:
            break
    assert sorted(seen) == list(range(12))
    assert archive.search("!?", session="s").note
    assert archive.search("needle", session="nobody").hits == ()


def test_search_text_cannot_break_out_of_the_query(archive):
    archive.record("s", TALK)
    for odd in [
        '"',
        'a" OR "b',
        "NEAR(lease, 2)",
        "text : lease",
        "lease*",
        "^lease",
        "-lease",
        "'; drop table messages; --",
        "%_",
    ]:
        archive.search(odd, session="s")
    assert len(archive.handles("s")) == 9


def test_a_regular_expression_finds_matches_in_order_and_a_bad_one_is_explained(archive):
    archive.record("s", TALK)
    found = archive.search_regex(r"(?i)lease_\w+|AUTH-\d+", session="s")
    assert [(h.position, re.search(r"(?i)lease_\w+|AUTH-\d+", h.text)[0]) for h in found.hits] == [
        (2, "AUTH-417"),
        (3, "LEASE_SECONDS"),
    ]
    page = archive.search_regex("lease", session="s", ignore_case=True, limit=2, offset=59)
    assert (len(page.hits), page.more) == (2, True)
    with pytest.raises(ArchiveError, match="not a regular expression"):
        archive.search_regex("(", session="s")


def test_a_regular_expression_that_runs_away_is_stopped_and_says_where(archive):
    archive.record("s", [{"role": "user", "content": "a" * 5000 + "b"}])
    found = archive.search_regex(r"(a+)+$", session="s", seconds=0.2)
    assert "position 0" in found.note
    assert found.more


def test_expanding_a_node_gives_its_originals_in_pages_within_the_limit(archive):
    archive.record("s", TALK)
    node = archive.store.add_node(Node(0, "s", 0, "summary", 3, 2000, 1, 7, 1.0, 2.0))
    pages, cursor = [], ""
    while True:
        page = archive.expand(f"n{node.id}", max_tokens=300, count=count, cursor=cursor)
        pages.append(page)
        cursor = page.next
        if not cursor:
            break
    assert len(pages) > 4
    assert all(sum(count(json.dumps(m, ensure_ascii=False)) for _, m in p.messages) <= 300 for p in pages)
    assert all(count(p.part[1]) <= 300 for p in pages if p.part)
    assert originals(archive, f"n{node.id}", max_tokens=300) == TALK[1:8]
    assert archive.search("renew_lease", session="s").hits[0].node == f"n{node.id}"


@pytest.mark.parametrize("handle", ["m999999", "n999999", "x1", "m", "m-1", "", "m1; drop", "m" + "9" * 30, "m١"])
def test_a_handle_that_stands_for_nothing_is_refused(archive, handle):
    with pytest.raises(ArchiveError) as caught:
        archive.describe(handle)
    assert caught.value.code == "unknown_handle"


def test_a_cursor_that_continues_nothing_is_refused(archive):
    archive.record("s", TALK)
    for cursor in ["7:0", "-1:0", "x", "0:x", "0"]:
        with pytest.raises(ArchiveError, match="continues nothing"):
            archive.expand(archive.handles("s")[0], max_tokens=10, count=count, cursor=cursor)


def test_nodes_are_put_above_others_in_one_step_and_never_overlap(archive):
    archive.record("s", TALK)
    store = archive.store
    one = store.add_node(Node(0, "s", 0, "one", 1, 9, 0, 2, 1.0, 2.0))
    two = store.add_node(Node(0, "s", 0, "two", 1, 9, 3, 4, 1.0, 2.0))
    with pytest.raises(ArchiveError) as caught:
        store.add_node(Node(0, "s", 0, "late", 1, 9, 2, 3, 1.0, 2.0))
    assert caught.value.code == "node_overlaps"
    above = store.add_node(Node(0, "s", 1, "both", 1, 18, 0, 4, 1.0, 2.0), [one.id, two.id])
    assert [n.id for n in store.roots("s")] == [above.id]
    assert [n.id for n in store.children(above.id)] == [one.id, two.id]
    with pytest.raises(ArchiveError):
        store.add_node(Node(0, "s", 1, "again", 1, 18, 0, 4, 1.0, 2.0), [one.id, two.id])
    described = archive.describe(f"n{above.id}")
    assert (described["children"], described["positions"]) == ([f"n{one.id}", f"n{two.id}"], [0, 4])
    assert archive.describe(f"n{one.id}")["parent"] == f"n{above.id}"


def test_a_text_that_was_cut_elsewhere_can_be_archived_and_found_by_its_handle(archive):
    handle = archive.record_text("browser", "row 1\nrow 2\nunusual_cell", call="browser_snapshot tab 3")
    assert archive.search("unusual_cell").hits[0].handle == handle
    assert archive.search("browser_snapshot").hits[0].head == "browser_snapshot tab 3"
    assert originals(archive, handle)[0]["content"] == "row 1\nrow 2\nunusual_cell"


def test_deletion_takes_messages_nodes_and_index_and_leaves_the_rest(archive):
    archive.record("s", TALK)
    archive.record("t", TALK)
    archive.store.add_node(Node(0, "s", 0, "one", 1, 9, 0, 2, 1.0, 2.0))
    handle = archive.handles("s")[3]
    assert archive.forget("s") == 9
    assert archive.forget("s") == 0
    assert {h.session for h in archive.search("renew_lease").hits} == {"t"}
    assert archive.store.roots("s") == []
    with pytest.raises(ArchiveError, match="nothing in the archive"):
        archive.describe(handle)
    assert archive.record("s", TALK[:2]) == [0, 1]
    assert archive.handles("s")[0] != handle


def test_a_conversation_can_be_renamed_but_not_over_another(archive):
    archive.record("s", TALK[:2])
    archive.record("t", TALK[:1])
    handle = archive.handles("s")[1]
    assert archive.store.rename("s", "u")
    assert not archive.store.rename("u", "t")
    assert not archive.store.rename("nobody", "v")
    assert archive.describe(handle)["session"] == "u"
    assert archive.search("login", session="u").hits[0].handle == handle


def test_retention_drops_the_old_by_age_and_then_the_oldest_by_size(archive, clock):
    for name in ["first", "second", "third"]:
        clock.now += 86_400
        archive.record(name, [{"role": "user", "content": name * 50_000}])
    assert archive.retain(days=3, megabytes=1) == []
    assert archive.retain(days=1.5) == ["first"]
    assert archive.retain(megabytes=0.3) == ["second"]
    assert [s.name for s in archive.sessions()] == ["third"]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({"role": st.text(), "content": _json}, optional={"tool_calls": st.just([]), "x": _json}),
        max_size=5,
    )
)
def test_any_json_message_is_archived_and_comes_back_byte_for_byte(store, messages):
    archive = Archive(store, clock=lambda: 1.0)
    archive.forget("any")
    archive.record("any", messages)
    back = [stored.message() for stored in store.messages("any")]
    assert json.dumps(back) == json.dumps(messages)

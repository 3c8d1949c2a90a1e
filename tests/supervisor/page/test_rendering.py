"""Lines, budgets, cursors and differences, without a browser."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.supervisor.page import render
from watchkeeper.supervisor.page.budget import fair_level
from watchkeeper.supervisor.page.lines import Lines, lines_of, quoted
from watchkeeper.supervisor.page.tree import FrameSpan, Tree

CURSOR = re.compile(r"cursor=s1:(\d+)-(\d+)(?:@(\d+))?")


def cost(text: str) -> int:
    return len(text.encode()) // 4


@st.composite
def pages(draw: st.DrawFn) -> Lines:
    """Any tree of lines, some of them long, over up to three frames."""
    lines = Lines()
    depth = 0
    for _ in range(draw(st.integers(1, 120))):
        depth = draw(st.integers(0, depth + 1)) if lines.depths else 0
        lines.depths.append(depth)
        lines.texts.append(quoted("x" * draw(st.sampled_from([1, 5, 30, 30, 30, 900]))))
        lines.kinds.append("text")
        lines.frames.append(0)
    lines.frame_starts[0] = (0, len(lines))
    return lines


@given(pages(), st.integers(60, 400))
def test_what_is_shown_and_what_cursors_lead_to_is_the_whole_page(lines: Lines, budget: int) -> None:
    covered = [0] * len(lines)
    todo: list[tuple[int, int]] = [(0, len(lines))]
    for _ in range(2000):
        if not todo:
            break
        start, end = todo.pop()
        got = render.render(lines, "s1", max_tokens=budget, cost=cost, start=start, end=end)
        assert cost(got.text) <= max(budget, 60)
        left_out: set[int] = set()
        for first, last, offset in CURSOR.findall(got.text):
            if offset:
                continue  # the rest of a long line that is shown
            assert start <= int(first) < int(last) <= end
            assert (int(first), int(last)) != (start, end), "a cursor leads further than to itself"
            todo.append((int(first), int(last)))
            left_out |= set(range(int(first), int(last)))
        for i in range(start, end):
            covered[i] += i not in left_out
    assert not todo
    assert all(covered)


def test_a_cursor_never_leads_to_itself_however_small_the_budget() -> None:
    sizes = [1] * 8 + [30, 900, 900, 1, 1, 30]
    lines = Lines()
    for depth, size in zip([0] * 8 + [1, 2, 3, 0, 0, 0], sizes, strict=True):
        lines.depths.append(depth)
        lines.texts.append(quoted("x" * size))
        lines.kinds.append("text")
        lines.frames.append(0)
    lines.frame_starts[0] = (0, len(lines))
    for start in range(len(lines)):
        got = render.render(lines, "s1", max_tokens=60, cost=cost, start=start)
        assert f"cursor=s1:{start}-{len(lines)}\n" not in f"{got.text}\n"
        assert got.shown


@given(st.text(max_size=200))
def test_a_quoted_text_is_one_string_on_one_line(text: str) -> None:
    shown = quoted(text)
    assert re.fullmatch(r'"(?:[^"\\]|\\.)*"', shown)
    assert len(shown.splitlines()) <= 1
    shown.encode()


@given(st.lists(st.integers(1, 500), min_size=1, max_size=40), st.integers(0, 5000))
def test_fair_shares_fit_and_leave_nothing_unused(sizes: list[int], budget: int) -> None:
    level = fair_level(sizes, budget)
    given_out = sum(min(size, level) for size in sizes)
    assert given_out <= max(budget, 0) or level == 0
    if max(sizes) > level:
        assert sum(min(size, level + 1) for size in sizes) > budget


def test_the_main_region_gets_more_shares_and_what_it_leaves_goes_to_the_others() -> None:
    assert fair_level([900, 900], 400, [3, 1]) == 100
    assert fair_level([60, 900], 400, [3, 1]) == 340


def test_a_long_line_is_cut_and_its_rest_follows_piece_by_piece() -> None:
    text = "".join(f"w{i} " for i in range(2000)).strip()
    lines = Lines([0], [quoted(text)], ["text"], [0], {0: (0, 1)})
    got = render.render(lines, "s1", max_tokens=200, cost=cost)
    whole = got.text
    for _ in range(100):
        found = CURSOR.search(got.text)
        if found is None:
            break
        got = render.rest_of_line(lines, int(found[1]), int(found[3]), "s1", 200, cost)
        assert cost(got.text) <= 200
        whole = re.sub(r'…" \(\+[^)]*\)', "", whole) + got.text.removeprefix('"…')
    assert whole == quoted(text)


def tree_of(*nodes: tuple[int, str, str, str]) -> Tree:
    tree = Tree()
    for depth, role, ref, name in nodes:
        tree.depths.append(depth)
        tree.roles.append(role)
        tree.refs.append(ref)
        tree.names.append(name)
    tree.spans.append(FrameSpan("f1", "F", "u", 0, len(nodes)))
    return tree


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([(0, "button", "e1", "Save")], ['e1 button "Save"']),
        ([(0, "", "", "words")], ['"words"']),
        ([(0, "row", "", ""), (1, "cell", "", "a"), (1, "cell", "", "")], ['row "a" ""']),
        (
            [(0, "row", "", ""), (1, "cell", "", "a"), (1, "cell", "", ""), (2, "button", "e1", "x"), (2, "", "", "y")],
            ['row "a" (e1 button "x" "y")'],
        ),
        ([(0, "list", "e1", ""), (1, "listitem", "", ""), (2, "link", "e2", "a")], ["e1 list", 'e2 link "a"']),
        (
            [(0, "listitem", "", ""), (1, "", "", "see"), (1, "link", "e2", "a")],
            ['- "see" e2 link "a"'],
        ),
        ([(0, "h2", "", "Title"), (1, "link", "e1", "Title")], ['h2 e1 link "Title"']),
        ([(0, "paragraph", "", ""), (1, "", "", "a"), (1, "link", "e1", "b")], ['"a" e1 link "b"']),
        ([(0, "alert", "", ""), (1, "", "", "Saved")], ['alert: "Saved"']),
    ],
)
def test_elements_that_belong_together_share_a_line(
    nodes: list[tuple[int, str, str, str]], expected: list[str]
) -> None:
    assert lines_of(tree_of(*nodes)).texts == expected


def test_containers_that_say_nothing_do_not_indent() -> None:
    nodes = [
        (0, "listitem", "", ""),
        (1, "list", "e1", ""),
        (2, "listitem", "", ""),
        (3, "form", "e2", "f"),
        (4, "button", "e3", "b"),
    ]
    lines = lines_of(tree_of(*nodes))
    assert list(zip(lines.depths, lines.texts, strict=True)) == [
        (0, "e1 list"),
        (1, 'e2 form "f"'),
        (2, 'e3 button "b"'),
    ]
    assert all(after - before <= 1 for before, after in pairwise(lines.depths))


def test_differences_are_what_came_and_what_went() -> None:
    before = Lines([0, 0, 0], ["a", "b", "c"], ["text"] * 3, [0] * 3)
    after = Lines([0, 0, 0], ["a", "x", "c"], ["text"] * 3, [0] * 3)
    assert render.changes(before, after, max_tokens=None, cost=cost).text == "1 line added, 1 removed\n- b\n+ x"
    many = Lines([0] * 9000, [f"n{i}" for i in range(9000)], ["text"] * 9000, [0] * 9000)
    got = render.changes(before, many, max_tokens=300, cost=cost)
    assert got.tokens <= 300
    assert "more changed lines" in got.text

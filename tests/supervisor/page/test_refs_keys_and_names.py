"""Refs, key names and file names: small grammars with exact rules."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.supervisor.errors import InvalidArgument
from watchkeeper.supervisor.page import keys
from watchkeeper.supervisor.page.downloads import free_path, safe_name
from watchkeeper.supervisor.page.refs import RefLedger, parse


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("e5", ("e", 5)), ("f2e17", ("f2e", 17)), ("@e5", ("e", 5)), ("[e5]", ("e", 5)), ("ref=e5", ("e", 5)),
        ("5", None), ("e", None), ("x5", None), ("e5 button", None), ("f2", None), ("e99999999999", None),
    ],
)  # fmt: skip
def test_refs_are_read_as_people_and_models_write_them(written: str, read: tuple[str, int] | None) -> None:
    assert parse(written) == read


@given(st.lists(st.tuples(st.sampled_from(["A", "B", "C"]), st.integers(0, 5)), max_size=40))
def test_each_number_belongs_to_the_frame_that_gave_it_out(steps: list[tuple[str, int]]) -> None:
    ledger, truth = RefLedger(), {}
    for frame, count in steps:
        first = ledger.next_number("e")
        truth |= dict.fromkeys(range(first, first + count), frame)
        ledger.given("e", frame, first + count)
    assert {number: ledger.frame_of("e", number) for number in truth} == truth
    assert ledger.frame_of("e", len(truth) + 1) is None
    assert ledger.frame_of("e", 0) is None
    assert ledger.frame_of("f2e", 1) is None


@pytest.mark.parametrize(
    ("written", "flags", "key", "text"),
    [
        ("Enter", 0, "Enter", "\r"), ("esc", 0, "Escape", ""), ("Control+A", 2, "a", ""), ("ctrl+shift+k", 10, "K", ""),
        ("Shift+Tab", 8, "Tab", ""), ("a", 0, "a", "a"), ("A", 8, "A", "A"),
        ("+", 8, "+", "+"), ("Control++", 10, "+", ""),
        ("space", 0, " ", " "), ("F5", 0, "F5", ""), ("!", 8, "!", "!"), ("Meta+ArrowLeft", 4, "ArrowLeft", ""),
    ],
)  # fmt: skip
def test_keys_have_their_dom_names_and_the_short_ones(written: str, flags: int, key: str, text: str) -> None:
    got, pressed = keys.parse(written)
    assert (got, pressed.key, pressed.text) == (flags, key, text)


@pytest.mark.parametrize(("written", "near"), [("Entr", "Enter"), ("Contrl+a", "control"), ("ArowUp", "ArrowUp")])
def test_an_unknown_key_is_answered_with_the_nearest(written: str, near: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        keys.parse(written)
    assert near in refused.value.hint


@given(st.characters(codec="ascii", exclude_categories=["Cc"]))
def test_every_printable_ascii_character_has_a_key(character: str) -> None:
    found = keys.key_of(character)
    assert found is not None
    assert found.text == character


@pytest.mark.parametrize(
    ("suggested", "safe"),
    [
        ("report.pdf", "report.pdf"), ("../../etc/passwd", "passwd"), ("..\\evil.exe", "evil.exe"),
        (".bashrc", "bashrc"),
        ("a\x00b\n.txt", "a_b_.txt"), ("", "download"), ("...", "download"), ("gpj\u202eexe.txt", "gpj_exe.txt"),
    ],
)  # fmt: skip
def test_suggested_file_names_are_made_harmless(suggested: str, safe: str) -> None:
    assert safe_name(suggested) == safe


def test_a_file_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "a (1).txt").write_text("old")
    assert free_path(tmp_path, "a.txt") == tmp_path / "a (2).txt"

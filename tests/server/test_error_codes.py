"""The list of error codes is whole: what can be raised is in it, and what is in it can be raised."""

import ast
from collections.abc import Iterator
from pathlib import Path

from watchkeeper.server.generate.error_codes import BASES, GIVEN, codes, table

ROOT = Path(__file__).parents[2]
PARTS = ("supervisor", "context", "server")
WITH_CODE = {"ToolError", "TranscriptError", "ArchiveError", "_failed"}
"""What takes a code as its first argument."""


def given() -> Iterator[tuple[str, str]]:
    """Code and place, wherever one is written down as an argument."""
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                first = node.args[0] if node.args and name in WITH_CODE else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_every_code_that_is_raised_is_declared_with_its_meaning() -> None:
    declared = codes()
    missing = {f"{code} ({place})" for code, place in given() if code not in declared}
    assert not missing, f"declare these in server/watchkeeper/server/generate/error_codes.py: {sorted(missing)}"


def test_every_code_that_is_declared_is_raised() -> None:
    raised = {code for code, _ in given()}
    for group, meanings in GIVEN.items():
        assert set(meanings) <= raised, group


def test_every_meaning_is_a_sentence_and_bases_are_left_out() -> None:
    declared = codes()
    assert {"no_dialog_open", "unknown_ref", "summarizer_failed", "launch_failed", "no_task"} <= set(declared)
    assert not BASES & set(declared)
    for code, (_, meaning) in declared.items():
        assert meaning[:1].isupper() or meaning.startswith("`"), code
        assert len(meaning) > 15, code
    assert table().count("\n") == len(declared) + 1

"""The guide to compression: its programs run, and its numbers are those of the code."""

import re
from pathlib import Path

from watchkeeper.context.core import budget

TEXT = (Path(__file__).parents[2] / "docs" / "compression.md").read_text(encoding="utf-8")


def test_the_programs_of_the_guide_run_as_they_stand(capsys):
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(block, "compression.md", "exec"), names)
    assert names["result"].report.compressed
    assert names["result"].report.tokens_after <= 4_000
    assert "Compressed: " in capsys.readouterr().out
    assert names["answer"].cache.enabled


def test_the_numbers_of_the_guide_are_those_of_the_code():
    assert budget.tail_budget("legacy", 200_000, 100_000, 0.2) == 20_000
    assert budget.tail_budget("lean", 200_000, 100_000, 0.2) == 10_000
    assert (budget.LEAN_LEAST, budget.LEAN_MOST, budget.LEAN_RATIO) == (10_000, 25_000, 0.025)
    assert (budget.HYGIENE_RATIO, budget.HYGIENE_MESSAGES, budget.TAIL_CAP) == (0.85, 4, 1.5)
    assert budget.summary_budget(10**6, 200_000) == 10_000
    for said in ("85% of the window, from four messages on", "1.5 times that", "10,000 to 25,000", "2,000 to 10,000"):
        assert said in TEXT

"""Every line of the threat model names tests, and those exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_line_of_the_threat_model_names_a_test_that_exists() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    model = text.partition("## Threat model")[2].partition("## What does not hold")[0]
    lines = [line for line in model.splitlines() if line.startswith("| ") and not line.startswith(("| it ", "|--"))]
    assert len(lines) >= 30
    for line in lines:
        names = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", line)
        assert names, line
        for file, test in names:
            source = (ROOT / file).read_text("utf-8")
            assert not test or re.search(rf"^(async )?def {test}\(", source, re.MULTILINE), f"{file}::{test}"

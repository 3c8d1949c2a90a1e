"""The audit of dependencies says what it found, and what it could not find out."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

AUDIT = Path(__file__).parents[2] / ".ci" / "audit.py"


@pytest.fixture
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dependency_audit", AUDIT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_not_as_pinned_fails(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pins = audit.pinned()
    assert "websockets" in audit.wanted() and "mcp" in audit.wanted()
    monkeypatch.setattr(audit, "vulnerabilities", lambda: (False, ""))
    monkeypatch.setattr(audit, "pinned", lambda: {**pins, "websockets": "0.0.1"})
    assert audit.main() == 1 and "pinned to 0.0.1" in capsys.readouterr().out
    monkeypatch.setattr(audit, "pinned", lambda: {name: pin for name, pin in pins.items() if name != "mcp"})
    assert audit.main() == 1 and "is not pinned" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("exit 0", 0, "no known vulnerabilities"),
        ("echo 'Found 1 known vulnerability in 1 package' >&2; exit 1", 1, "Found 1 known vulnerability"),
        ("echo 'ConnectionError: no route' >&2; exit 1", 0, "NOT checked"),
        (None, 0, "NOT checked"),
    ],
)
def test_a_database_out_of_reach_is_no_clean_bill(
    audit: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    script: str | None,
    status: int,
    said: str,
) -> None:
    program = tmp_path / "pip-audit"
    if script is not None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
    monkeypatch.setattr(audit.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(audit.shutil, "which", lambda name: None)
    monkeypatch.setattr(audit, "drift", list)
    assert audit.main() == status
    # Whoever releases wants to have it checked.
    assert audit.main(["--complete"]) == (1 if said == "NOT checked" else status)
    assert said in capsys.readouterr().out

"""The pictures are as they are drawn, and what they name stands in the code."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from fakes.markdown import ROOT

PICTURES = ROOT / "docs" / "pictures"
DRAWN = ("parts", "dialog", "frames", "call", "compression")
GUARD_S = 60.0


def sources() -> str:
    files = [path for part in ("supervisor", "context", "server") for path in (ROOT / part).rglob("*.py")]
    return "\n".join(path.read_text("utf-8") for path in files)


def texts(name: str) -> list[str]:
    root = ElementTree.parse(PICTURES / f"{name}.svg").getroot()
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


def test_every_picture_is_as_it_is_drawn() -> None:
    command = [sys.executable, str(PICTURES / "draw.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.stem for path in PICTURES.glob("*.svg")} >= set(DRAWN)


@pytest.mark.chrome
def test_the_picture_of_the_demo_shows_what_a_run_says() -> None:
    command = [sys.executable, str(PICTURES / "demo.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S + 60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_commands_codes_and_names_in_the_pictures_are_those_of_the_code() -> None:
    code = sources()
    seen = set()
    for name in DRAWN:
        for text in texts(name):
            for word in re.findall(r"\b[A-Z][a-z]+\.[a-z]\w+|\b[a-z]+_[a-z_]+[a-z]\b|\b[a-z]+[A-Z]\w+", text):
                seen.add(word)
                assert word in code, f"{name}.svg: {word}"
    assert {"Debugger.paused", "evaluateOnCallFrame", "setAutoAttach", "dialog_opened", "target_crashed"} <= seen


def test_numbers_in_the_picture_of_a_call_are_those_of_the_code() -> None:
    from watchkeeper.server.settings import Settings
    from watchkeeper.server.tools.spec import CALL_MARGIN_S
    from watchkeeper.supervisor.calls import BESIDE_DIALOG_TIMEOUT_S, BESIDE_NAVIGATION_TIMEOUT_S

    said = " ".join(texts("call"))
    assert f"call_timeout_s {Settings().browser.call_timeout_s:g}" in said
    assert f"{CALL_MARGIN_S:g} s to tell" in said
    page = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    assert f"the tool's, {CALL_MARGIN_S:g} s" in page
    assert f"waits {BESIDE_NAVIGATION_TIMEOUT_S:g} s at most" in page
    assert f"shared {BESIDE_DIALOG_TIMEOUT_S:g} s" in page

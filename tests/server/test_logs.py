"""Logs: what a line has, what it never has, and the file that it goes into."""

import json
import logging
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from fakes.fake_browser import FakeBrowser
from fakes.raw_client import Raw

from watchkeeper.server.observability import logs
from watchkeeper.server.observability.logs import CannotLog, OwnFile, Redacted, fields, start_logging
from watchkeeper.server.settings import LogFormat

pytestmark = pytest.mark.anyio


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, put back as it was."""
    found, ours = logging.getLogger(), logging.getLogger("watchkeeper")
    before, level, our_level = found.handlers[:], found.level, ours.level
    yield found
    for handler in set(found.handlers) - set(before):
        handler.close()
    found.handlers[:] = before
    found.setLevel(level)
    ours.setLevel(our_level)


def line(form: LogFormat, message: str, *args: object, name: str = "watchkeeper.x", **extra: object) -> str:
    record = logging.LogRecord(name, logging.INFO, "x", 1, message, args, None)
    vars(record).update(extra)
    return Redacted(form, lambda text: text).format(record)


def test_a_line_has_the_fields_of_its_call_in_both_forms() -> None:
    with fields(call="3f2a", tool="browser_navigate", principal="") as about:
        about["task"] = "shop one"
        text = line("text", "%s %s in %.0f ms", "browser_navigate", "ok", 31.4, outcome="ok", ms=31.4, other=1)
        parsed = json.loads(line("json", "done", outcome="ok", ms=31.4, other=1))
    assert text.endswith(' INFO watchkeeper.x: browser_navigate ok in 31 ms [call=3f2a task="shop one"]')
    assert parsed.pop("time").endswith("+00:00")
    assert parsed == {
        "level": "info",
        "logger": "watchkeeper.x",
        "message": "done",
        "call": "3f2a",
        "tool": "browser_navigate",
        "task": "shop one",
        "outcome": "ok",
        "ms": 31.4,
    }
    assert "call=" not in line("text", "outside of a call")


async def test_what_a_call_logs_in_threads_is_its_own() -> None:
    async def one(number: int) -> str:
        with fields(call=f"c{number}"):
            await anyio.lowlevel.checkpoint()
            return await anyio.to_thread.run_sync(line, "text", "from a thread")

    said: dict[int, str] = {}

    async def keep(number: int) -> None:
        said[number] = await one(number)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(keep, number)
    assert all(text.endswith(f"[call=c{number}]") for number, text in said.items()) and len(said) == 5


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_from_outside_begins_a_line_of_its_own(form: LogFormat) -> None:
    evil = "a\n2026-12-01T00:00:00 ERROR watchkeeper: \x1b[2Jforged\r\u2028b"
    try:
        raise ValueError(evil)
    except ValueError:
        about = sys.exc_info()
    with fields(call="c", task=evil):
        shown = line(form, "said %s", evil, exc_info=about)
    assert not set("\x1b\r\u2028") & set(shown)
    first, *rest = shown.split("\n")
    assert "forged" in first and all(part.startswith("    ") for part in rest)
    assert form == "text" or rest == []


def test_messages_of_other_libraries_and_texts_of_unexpected_errors_are_cut() -> None:
    long = "page " * 10_000
    assert len(line("text", long, name="mcp.server")) < logs.FOREIGN_CAP + 200
    assert len(line("text", long)) < logs.MESSAGE_CAP + 200

    def deep(level: int) -> None:
        if level:
            deep(level - 1)
        raise ValueError(long)

    try:
        deep(200)
    except ValueError:
        about = sys.exc_info()
    shown = line("text", "failed", exc_info=about).split("\n")
    assert max(map(len, shown)) < logs.FOREIGN_CAP + 100 and len(shown) <= logs.TRACEBACK_LINES + 5
    assert "ValueError: page" in shown[-1]


def test_the_file_is_its_owners_and_capped_and_goes_on_where_it_was_renamed(
    tmp_path: Path, root: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "FILE_BYTES", 2_000)
    path = tmp_path / "watch.log"
    start_logging("info", lambda text: text.replace("hunter", "[secret]"), format="json", file=str(path))
    log = logging.getLogger("watchkeeper.test")
    log.info("hunter")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.rename(tmp_path / "moved")
    log.info("after the rename")
    assert [json.loads(text)["message"] for text in path.read_text().splitlines()] == ["after the rename"]
    assert "[secret]" in (tmp_path / "moved").read_text()
    for number in range(200):
        log.info("line %d", number)
    kept = sorted(tmp_path.glob("watch.log*"))
    assert len(kept) == 1 + logs.FILES_BEFORE
    assert all(part.stat().st_size <= 2_000 and stat.S_IMODE(part.stat().st_mode) == 0o600 for part in kept)
    assert "line 199" in path.read_text()


def test_that_the_file_cannot_be_written_any_more_is_said_once(
    tmp_path: Path, root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    start_logging("info", str, file=str(folder / "watch.log"))
    (folder / "watch.log").unlink()
    folder.rmdir()
    for _ in range(3):
        logging.getLogger("watchkeeper.test").info("still told on stderr")
    said = capsys.readouterr().err
    assert said.count("still told on stderr") == 3
    assert said.count("cannot be written: No such file or directory") == 1 and "server.log_file" in said


def test_a_path_that_cannot_be_a_log_file_is_refused_and_nothing_changes(tmp_path: Path, root: logging.Logger) -> None:
    before = root.handlers[:]
    for path in (tmp_path, tmp_path / "missing" / "x.log"):
        with pytest.raises(CannotLog, match=r"cannot be written: .*\. Name another with server.log_file"):
            start_logging("info", str, file=str(path))
    assert root.handlers == before


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_server_with_a_bad_log_file_does_not_start(tmp_path: Path, way: str) -> None:
    raw = Raw("--transport", way, "--port", "0", "--log-file", str(tmp_path / "missing" / "x.log"))
    status, out, err = await raw.ended()
    assert (status, out) == (2, b"")
    assert err.decode().startswith("watchkeeper: the log file ") and b"Traceback" not in err


async def test_calls_of_a_server_are_found_in_its_file_by_their_number(browser: FakeBrowser, tmp_path: Path) -> None:
    path = tmp_path / "watch.log"
    raw = Raw(
        *("--cdp-url", browser.url, "--browser.bridge", "never", "--log-file", str(path)),
        *("--log-level", "info", "--server.log_format", "json"),
    )
    try:
        await raw.open()
        raw.call(1, "browser_navigate", url="http://a.test/?token=abcdefghijklmnop1234", task_id="shop")
        while "id" not in await raw.read():
            """That there are more resources is told beforehand."""
        raw.call(2, "browser_snapshot", task_id="other")
        while (await raw.read()).get("id") != 2:
            """As above."""
    finally:
        raw.kill()
    written = [json.loads(text) for text in path.read_text().splitlines()]
    calls = [entry for entry in written if entry["logger"] == "watchkeeper.server.dispatch"]
    assert [(entry["tool"], entry["task"], entry["outcome"]) for entry in calls] == [
        ("browser_navigate", "shop", "ok"),
        ("browser_snapshot", "other", "no_task"),
    ]
    assert len({entry["call"] for entry in calls}) == 2 and all(entry["ms"] > 0 for entry in calls)
    begun = next(entry for entry in written if entry["message"].startswith("task begins"))
    assert begun["call"] == calls[0]["call"] and begun["browser"]
    assert "abcdefghijklmnop1234" not in path.read_text()


def test_a_file_that_is_no_regular_one_is_not_replaced() -> None:
    handler = OwnFile("/dev/null")
    assert not handler.shouldRollover(logging.LogRecord("x", logging.INFO, "x", 1, "m" * 10_000_000, (), None))
    handler.close()

"""``watchkeeper archive``: readable, exact in what it deletes, and it deletes nothing else."""

import json
import time
from pathlib import Path

import pytest

from watchkeeper.context.archive import open_archive
from watchkeeper.server.cli import main
from watchkeeper.server.conversations import Conversations
from watchkeeper.server.settings import Settings

pytestmark = pytest.mark.usefixtures("clean_environment")
DAY = 86_400


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder, with nothing in it."""
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    from watchkeeper.context.archive import default_location

    return default_location().parent


def fill(path: Path) -> Path:
    """``old`` of ten days ago, with a branch; ``large`` of five days ago; ``new``."""
    for name, days, text in (("old", 10, "x"), ("old #2", 10, "y"), ("large", 5, "z" * 2_000_000), ("new", 0, "w")):
        archive = open_archive(path, clock=lambda days=days: time.time() - days * DAY)  # type: ignore[misc]
        archive.record(name, [{"role": "user", "content": text}])
        archive.close()
    return path


def names(path: Path) -> list[str]:
    archive = open_archive(path)
    try:
        return sorted(session.name for session in archive.sessions())
    finally:
        archive.close()


@pytest.mark.parametrize("arguments", [["list"], ["prune", "--days", "1"]])
def test_an_archive_that_is_not_there_is_said_to_be_so_and_not_made(
    arguments: list[str], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["archive", *arguments]) == 0
    assert "There is no archive yet" in capsys.readouterr().out
    assert not data.exists()


def test_conversations_are_listed_the_newest_first(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = fill(data / "archive.db")
    assert main(["archive", "list"]) == 0
    first, _, _, *rows = capsys.readouterr().out.splitlines()
    assert first == f"{path}: 4 conversations, 2.00 MB"
    assert [row.split()[-1] for row in rows[:2]] == ["new", "large"]
    assert main(["archive", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(one["session"], one["messages"]) for one in listed][:2] == [("new", 1), ("large", 1)]


def test_the_archive_that_settings_name_is_the_one_that_is_used(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for engine in ("compressor", "lcm"):
        path = fill(tmp_path / f"{engine}.db")
        chosen = ["--context.engine", engine, "--context.engines", json.dumps({engine: {"path": str(path)}})]
        assert main(["archive", "forget", "new", *chosen]) == 0
        assert names(path) == ["large", "old", "old #2"]
    named = fill(data / "archive-alice.db")
    assert main(["archive", "forget", "new", "--principal", "alice"]) == 0
    assert names(named) == ["large", "old", "old #2"]


def test_forgetting_takes_one_conversation_with_its_branches_and_says_so(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = fill(data / "archive.db")
    assert main(["archive", "forget", "old"]) == 0
    said = capsys.readouterr().out
    assert "Deleted old: 1 message, 0.00 MB." in said
    assert "Deleted old #2: 1 message, 0.00 MB." in said
    assert names(path) == ["large", "new"]
    assert main(["archive", "forget", "ol"]) == 1
    assert "no conversation 'ol'; nothing was deleted" in capsys.readouterr().err
    assert names(path) == ["large", "new"]


@pytest.mark.parametrize(
    ("limits", "stay"),
    [
        (["--days", "7"], ["large", "new"]),
        (["--megabytes", "1"], ["new"]),
        (["--context.archive_keep_days", "7"], ["large", "new"]),
        (["--days", "30"], ["large", "new", "old", "old #2"]),
    ],
)
def test_pruning_deletes_what_is_old_or_too_much_and_names_it(
    limits: list[str], stay: list[str], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = fill(data / "archive.db")
    assert main(["archive", "prune", *limits]) == 0
    said = capsys.readouterr().out
    assert names(path) == stay
    assert {line.partition(":")[0] for line in said.splitlines() if line.startswith("Deleted")} == {
        f"Deleted {name}" for name in ("large", "new", "old", "old #2") if name not in stay
    }
    assert said


def test_pruning_without_a_limit_deletes_nothing_and_says_what_to_give(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = fill(data / "archive.db")
    assert main(["archive", "prune"]) == 1
    assert "--days" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["archive", "prune", "--days", "0"])
    assert ended.value.code == 2
    assert len(names(path)) == 4


@pytest.mark.parametrize("engine", ["compressor", "lcm"])
def test_the_server_keeps_what_settings_say_when_it_opens_the_archive(data: Path, engine: str) -> None:
    path = fill(data / "archive.db")
    context = {"engine": engine, "archive": True, "archive_keep_days": 7}
    conversations = Conversations(Settings.model_validate({"context": context}))
    conversations.call_tool("", None, "lcm_grep" if engine == "lcm" else "archive_grep", {"query": "w"})
    conversations._close()
    assert names(path) == ["large", "new"]

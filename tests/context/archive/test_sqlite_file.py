"""The archive's file: whose it is, what survives, what is gone."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from watchkeeper.context.archive import open_archive
from watchkeeper.context.archive.sqlite import SqliteStore
from watchkeeper.context.store import ArchiveError

WRITER = """
import sys
from watchkeeper.context.archive import open_archive
path, session, worker, most = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
archive = open_archive(path)
for n in range(most):
    body = f"{worker} message {n} " + "words of a result " * 300
    print(f"{worker} message {n} ", archive.record_text(session, body), flush=True)
"""


def writer(path, session, worker, most=100_000):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, path, session, worker, str(most)], stdout=subprocess.PIPE, text=True
    )


def check(path):
    """Whether SQLite finds the file and the index whole."""
    db = sqlite3.connect(path)
    try:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
        db.execute("insert into chunks (chunks) values ('integrity-check')")
    finally:
        db.close()


def test_killing_the_writer_at_any_moment_loses_nothing_acknowledged(tmp_path):
    path = tmp_path / "archive.db"
    acknowledged = []
    for turn in range(8):
        process = writer(path, "s", f"writer{turn}")
        try:
            for _ in range(1 + 7 * turn % 12):  # let it acknowledge a few, then kill it in the middle of the next
                acknowledged.append(process.stdout.readline().rsplit(" ", 1))
            process.send_signal(signal.SIGKILL)
            acknowledged += [line.rsplit(" ", 1) for line in process.stdout if line.endswith("\n")]
        finally:
            process.kill()
            process.wait(timeout=30)
            process.stdout.close()
        check(path)
    archive = open_archive(path)
    try:
        assert len(acknowledged) > 20
        for text, handle in acknowledged:
            stored = archive.store.message(int(handle.strip()[1:]))
            assert stored.message()["content"].startswith(text)
        positions = list(archive.handles("s"))
        assert positions == list(range(len(positions)))
        last = archive.search(f'"{acknowledged[-1][0].strip()}"', session="s")
        assert f"m{acknowledged[-1][1].strip()[1:]}" in [h.handle for h in last.hits]
    finally:
        archive.close()


def test_several_processes_and_threads_write_at_once_without_gaps(tmp_path):
    path = tmp_path / "archive.db"
    processes = [writer(path, "shared", f"p{n}", 15) for n in range(3)]
    archive = open_archive(path)
    try:
        threads = [
            threading.Thread(target=lambda n=n: [archive.record_text("shared", f"t{n} {i}") for i in range(15)])
            for n in range(3)
        ]
        for thread in threads:
            thread.start()
        for process in processes:
            out, _ = process.communicate(timeout=120)
            assert (process.returncode, len(out.splitlines())) == (0, 15)
        for thread in threads:
            thread.join(timeout=120)
        assert list(archive.handles("shared")) == list(range(90))
    finally:
        archive.close()
        for process in processes:
            process.kill()
            process.wait(timeout=30)
    check(path)


def test_the_file_and_its_folder_are_their_owners_alone(tmp_path):
    old = os.umask(0)
    try:
        store = SqliteStore(tmp_path / "new" / "deep" / "archive.db")
        archive = open_archive(tmp_path / "new" / "deep" / "archive.db")
        archive.record_text("s", "text")
        files = list((tmp_path / "new" / "deep").iterdir())
        assert {f.name for f in files} >= {"archive.db", "archive.db-wal"}
        assert all(f.stat().st_mode & 0o077 == 0 for f in [*files, tmp_path / "new" / "deep"])
        archive.close()
        store.close()
        (tmp_path / "new" / "deep" / "archive.db").chmod(0o644)
        SqliteStore(tmp_path / "new" / "deep" / "archive.db").close()
        assert (tmp_path / "new" / "deep" / "archive.db").stat().st_mode & 0o077 == 0
    finally:
        os.umask(old)


def test_what_is_deleted_is_in_no_byte_of_the_file(tmp_path):
    archive = open_archive(tmp_path / "archive.db")
    try:
        archive.record("s", [{"role": "user", "content": f"tiresome{n} zanzibar{n} filler" * 40} for n in range(50)])
        archive.record("t", [{"role": "user", "content": "kept"}])
        archive.forget("s")
        left = b"".join(f.read_bytes() for f in tmp_path.iterdir())
        assert b"zanzibar" not in left
        assert b"kept" in left
    finally:
        archive.close()


def test_a_file_that_is_no_archive_or_a_newer_one_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "x.db"
    path.write_bytes(b"not a database, but somebody's notes" * 100)
    before = path.read_bytes()
    with pytest.raises(ArchiveError, match=r"cannot use the archive .*x\.db"):
        SqliteStore(path)
    assert path.read_bytes() == before
    others = tmp_path / "others.db"
    db = sqlite3.connect(others)
    db.execute("create table messages (theirs)")
    db.close()
    before = others.read_bytes()
    with pytest.raises(ArchiveError, match="another program"):
        SqliteStore(others)
    assert others.read_bytes() == before
    newer = tmp_path / "newer.db"
    SqliteStore(newer).close()
    db = sqlite3.connect(newer)
    db.execute("pragma user_version = 99")
    db.close()
    with pytest.raises(ArchiveError, match="written by a newer version"):
        SqliteStore(newer)


def test_a_closed_archive_says_so(tmp_path):
    archive = open_archive(tmp_path / "a.db")
    archive.close()
    archive.close()
    with pytest.raises(ArchiveError, match="has been closed"):
        archive.record_text("s", "x")

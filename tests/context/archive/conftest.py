"""Stores to test against: a SQLite file, and a PostgreSQL server that is started for the tests if it is installed."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from watchkeeper.context.archive import Archive


def _postgres_bin():
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).parent if found else None


@pytest.fixture(scope="session")
def postgres_url():
    """A URL of a server of our own on a socket in a temporary folder."""
    programs = _postgres_bin()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed")
    folder = Path(tempfile.mkdtemp(prefix="wk-pg-", dir="/tmp"))
    folder.chmod(0o755)
    as_user = {}
    user = pwd.getpwuid(os.getuid()).pw_name
    if os.getuid() == 0:  # the server refuses to run as root
        user = "postgres"
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
        as_user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    run = {"check": True, "capture_output": True, "timeout": 60, "cwd": folder, **as_user}
    data = folder / "data"
    subprocess.run([programs / "initdb", "-D", data, "-A", "trust", "-U", user, "--no-sync"], **run)
    subprocess.run(
        [
            *(programs / "pg_ctl", "-D", data, "-w", "-t", "50", "-l", folder / "log", "start"),
            *("-o", f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"),
        ],
        **{**run, "capture_output": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL},
    )
    try:
        yield f"postgresql://{user}@/postgres?host={folder}"
    finally:
        subprocess.run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **run)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    """Each store in turn, empty."""
    if request.param == "sqlite":
        from watchkeeper.context.archive.sqlite import SqliteStore

        opened = SqliteStore(tmp_path / "folder" / "archive.db")
    else:
        url = request.getfixturevalue("postgres_url")
        from watchkeeper.context.archive.postgres import PostgresStore

        opened = PostgresStore(url)
        opened.forget([session.name for session in opened.sessions()])
    yield opened
    opened.close()


@pytest.fixture
def clock():
    """A clock that is set by hand."""
    return Clock()


class Clock:
    now = 1_700_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def archive(store, clock):
    return Archive(store, clock=clock)

"""Several owners in one PostgreSQL database."""

from watchkeeper.context.archive import open_archive
from watchkeeper.context.archive.postgres import LONGEST_NAME, schema_of


def test_owners_in_one_database_cannot_reach_each_others_archive(postgres_url):
    longer = "o" * LONGEST_NAME
    owners = ("", "one", 'two"; drop schema watchkeeper; --', longer + "1", longer + "2")
    archives = {owner: open_archive(postgres_url, owner=owner) for owner in owners}
    try:
        archives[""].store.forget([session.name for session in archives[""].sessions()])  # of other tests
        handles = {
            owner: archive.record_text("same name", f"what {number} keeps", call="a call")
            for number, (owner, archive) in enumerate(archives.items())
        }
        for number, (owner, archive) in enumerate(archives.items()):
            assert [session.name for session in archive.sessions()] == ["same name"]
            assert f"what {number} keeps" in str(archive.expand(handles[owner], max_tokens=100, count=len))
        archives["one"].forget("same name")
        assert archives["one"].sessions() == []
        assert all(archive.sessions() for owner, archive in archives.items() if owner != "one")
    finally:
        for archive in archives.values():
            archive.store.forget([session.name for session in archive.sessions()])
            archive.close()


def test_every_owner_has_a_schema_that_postgres_does_not_cut():
    names = {schema_of(owner) for owner in ("", "one", "x" * 52, "x" * 53, "é" * 40, "é" * 41)}
    assert len(names) == 6 and all(len(name.encode()) <= LONGEST_NAME for name in names)

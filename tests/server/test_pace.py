"""How often something is told: at once, then not before its time, and never lost."""

from watchkeeper.server.protocol.pace import Pace


def test_what_has_no_wait_is_told_every_time() -> None:
    pace = Pace({"dialogs": 0.0})
    for now in (5.0, 5.0, 5.1):
        pace.changed("dialogs")
        assert pace.due(now) == ("dialogs",)
    assert pace.next() is None


def test_what_changes_too_soon_is_told_once_when_its_time_has_come() -> None:
    pace = Pace({"console": 1.0, "dialogs": 0.0})
    pace.changed("console")
    assert pace.due(10.0) == ("console",)
    for _ in range(50):
        pace.changed("console")
    assert pace.due(10.5) == ()
    assert pace.next() == 11.0
    pace.changed("dialogs")
    assert pace.due(10.6) == ("dialogs",), "one waits for no other"
    assert pace.due(11.0) == ("console",)
    assert pace.due(99.0) == () and pace.next() is None

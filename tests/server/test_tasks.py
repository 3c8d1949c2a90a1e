"""Tasks: whose they are, what backend they have, and when they end."""

from pathlib import Path

import pytest
from fakes.fake_browser import FakeBrowser

from watchkeeper.server.errors import ToolError
from watchkeeper.server.settings import Settings
from watchkeeper.server.tasks import Tasks, endpoint
from watchkeeper.supervisor import CdpEndpoint, LocalEndpoint

pytestmark = pytest.mark.anyio


def settings(**browser: object) -> Settings:
    return Settings.model_validate({"browser": browser})


async def test_principals_cannot_reach_each_others_tasks(browser: FakeBrowser) -> None:
    tasks = Tasks(settings(cdp_url=browser.url))
    alices = await tasks.start("alice", "default")
    assert tasks.get("alice", "default") is alices
    for principal, task_id in (("bob", "default"), ("", "default"), ("", "alice"), ("bob", "alice/default")):
        assert tasks.get(principal, task_id) is None
    bobs = await tasks.start("bob", "default")
    assert bobs is not alices
    await tasks.close()


async def test_a_task_that_is_not_used_ends_and_one_that_works_does_not(browser: FakeBrowser) -> None:
    now = 0.0
    tasks = Tasks(settings(cdp_url=browser.url, idle_timeout_s=60), clock=lambda: now)
    await tasks.start("", "idle")
    await tasks.start("", "busy")
    tasks.begin("", "busy")
    now = 59.0
    await tasks.end_idle()
    assert tasks.get("", "busy") is not None
    now = 61.0
    await tasks.end_idle()
    with pytest.raises(ToolError, match="no browser"):
        tasks.require("", "idle")
    assert tasks.get("", "busy") is not None
    now = 500.0
    await tasks.end_idle()
    assert tasks.get("", "busy") is not None
    tasks.end("", "busy")
    now = 561.0
    await tasks.end_idle()
    assert tasks.get("", "busy") is None
    await tasks.close()


async def test_zero_means_that_tasks_never_end_by_themselves(browser: FakeBrowser) -> None:
    now = 0.0
    tasks = Tasks(settings(cdp_url=browser.url, idle_timeout_s=0), clock=lambda: now)
    await tasks.start("", "a")
    now = 1e9
    await tasks.end_idle()
    assert tasks.get("", "a") is not None
    await tasks.close()


def test_settings_become_an_endpoint() -> None:
    assert endpoint(settings(cdp_url="ws://h:1/x")) == CdpEndpoint("ws://h:1/x")
    assert isinstance(endpoint(settings(backend="local", cdp_url="ws://h:1/x")), LocalEndpoint)
    local = endpoint(
        settings(
            executable="/b",
            headless=True,
            locale="de",
            ignore_certificate_errors=True,
            extra_args=("--x",),
            proxy="p:1",
        )
    )
    assert local == LocalEndpoint("/b", True, None, ("--x", "--lang=de", "--ignore-certificate-errors"), "p:1")
    with pytest.raises(ToolError, match=r"browser\.cdp_url is not set"):
        endpoint(settings(backend="cdp"))


def test_without_a_browser_its_tools_are_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchkeeper.supervisor.find_browser", lambda: None, raising=False)
    tasks = Tasks(settings())
    assert tasks.capabilities() == frozenset()
    monkeypatch.setattr("watchkeeper.supervisor.find_browser", lambda: Path("/b"), raising=False)
    assert tasks.capabilities() == {"cdp", "dialogs"}
    monkeypatch.setattr("watchkeeper.supervisor.find_browser", lambda: None, raising=False)
    assert Tasks(settings(executable="/somewhere")).capabilities() == {"cdp", "dialogs"}
    assert Tasks(settings(cdp_url="ws://h:1/x")).capabilities() == {"cdp", "dialogs"}

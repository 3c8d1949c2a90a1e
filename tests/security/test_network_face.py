"""What another client of the HTTP server can do: little, and nothing to what belongs to others."""

from typing import Any

import anyio
import httpx2 as httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.server import tasks
from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.protocol.app import make_server
from watchkeeper.server.settings import Settings
from watchkeeper.server.tasks import Tasks
from watchkeeper.server.tools.spec import Annotations, Arguments, Call, ToolResult, ToolSpec
from watchkeeper.server.transports import access
from watchkeeper.server.transports.http import make_app
from watchkeeper.server.transports.limits import FORGET_AT, Buckets

pytestmark = pytest.mark.anyio
TOKENS = {"alice": "alice-has-this-token", "bob": "bob-has-another-one"}


class Recorded:
    """A registry that starts nothing and remembers by which names it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.running: dict[str, Any] = {}

    def get(self, task_id: str) -> Any:
        self.asked.append(task_id)
        return self.running.get(task_id)

    async def get_or_start(self, task_id: str, endpoint: Any, **options: Any) -> Any:
        self.asked.append(task_id)
        return self.running.setdefault(task_id, object())

    async def stop(self, task_id: str) -> bool:
        self.asked.append(task_id)
        return self.running.pop(task_id, None) is not None

    async def stop_all(self) -> None: ...


async def quiet(done: float, total: float | None = None, message: str | None = None) -> None:
    return None


PRINCIPALS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}", fullmatch=True)


@given(PRINCIPALS, st.text(max_size=64), PRINCIPALS, st.text(max_size=64))
def test_no_two_principals_ever_name_the_same_task(one: str, mine: str, other: str, theirs: str) -> None:
    if one != other:
        assert tasks._key(one, mine) != tasks._key(other, theirs)


@pytest.mark.parametrize(
    "task_id",
    ["bob/default", "../bob/default", "/bob/default", "alice/../bob/default", "bob\x00/default", "bob%2fdefault"],
)
async def test_a_task_of_another_principal_is_reached_by_no_name(task_id: str) -> None:
    registry = Recorded()
    registry.running["bob/default"] = object()
    made = Tasks(Settings(), registry)
    dispatcher = Dispatcher(Settings(), made)
    for tool, arguments in (
        ("browser_snapshot", {}),
        ("browser_cdp", {"method": "Page.reload"}),
        ("browser_dialog", {"action": "accept"}),
        ("browser_tabs", {"action": "list"}),
        ("browser_close", {}),
    ):
        registry.asked.clear()
        if not any(spec.name == tool for spec in dispatcher.offered()):
            continue
        reply = await dispatcher.call(tool, {**arguments, "task_id": task_id}, "alice", quiet)
        assert reply.is_error or reply.structured.get("closed") is False, (tool, reply)
        assert all(name.startswith("alice/") for name in registry.asked)
    assert "bob/default" in registry.running


async def test_a_wrong_token_is_compared_with_all_of_them_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    real = access.hmac.compare_digest

    def counted(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return real(a, b)

    monkeypatch.setattr(access.hmac, "compare_digest", counted)
    verifier = access.Tokens(TOKENS)
    for given_token in ("alice-has-this-token", "nobody's", "", "alice-has-this-toke", "\ud800"):
        compared.clear()
        found = await verifier.verify_token(given_token)
        assert (found is not None) == (given_token in TOKENS.values())
        assert len(compared) == len(TOKENS)
        assert len({len(side) for pair in compared for side in pair}) == 1  # digests: lengths tell nothing


async def test_one_client_may_run_so_many_calls_at_once_and_others_go_on() -> None:
    going, release = anyio.Event(), anyio.Event()

    async def wait(call: Call, arguments: Arguments) -> ToolResult:
        going.set()
        await release.wait()
        return ToolResult("done")

    spec = ToolSpec("slow", "Slow", "", {}, wait, lambda a, s: 60.0, annotations=Annotations(), browser=False)
    dispatcher = Dispatcher(Settings.model_validate({"server": {"max_calls": 2}}), tools=(spec,))
    replies = []

    async def ask(principal: str) -> None:
        replies.append((principal, await dispatcher.call("slow", {}, principal, quiet)))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for principal in ("alice", "alice", "bob"):
                group.start_soon(ask, principal)
            await going.wait()
            await anyio.lowlevel.checkpoint()
            refused = await dispatcher.call("slow", {}, "alice", quiet)
            assert refused.structured["error"]["code"] == "too_many_calls"
            release.set()
    assert sorted(principal for principal, reply in replies if not reply.is_error) == ["alice", "alice", "bob"]
    assert not (await dispatcher.call("slow", {}, "alice", quiet)).is_error


def test_a_bucket_empties_and_fills_again() -> None:
    now = 0.0
    buckets = Buckets(10, lambda: now)
    assert [buckets.take("a") for _ in range(50)] == [0] * 50
    assert 0 < buckets.take("a") <= 0.1
    assert buckets.take("b") == 0
    now = 0.1
    assert buckets.take("a") == 0
    assert buckets.take("a") > 0
    for number in range(FORGET_AT + 10):
        now += 1
        buckets.take(f"address {number}")
    assert len(buckets._left) < 20  # who has been quiet costs nothing


async def test_requests_past_the_rate_get_429_and_tokens_count_apart() -> None:
    given_settings = {"auth_tokens": TOKENS, "max_requests_per_s": 1, "transport": "http"}
    settings = Settings.model_validate({"server": given_settings})
    app = make_app(make_server(Dispatcher(settings, tools=())), settings)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def ask(token: str | None, host: str = "127.0.0.1") -> int:
            headers = {"Host": host, **({"Authorization": f"Bearer {token}"} if token else {})}
            return (await client.get("/nowhere", headers=headers)).status_code

        assert [await ask(TOKENS["alice"]) for _ in range(7)] == [404] * 5 + [429] * 2
        assert await ask(TOKENS["bob"]) == 404
        assert [await ask(None) for _ in range(7)] == [404] * 5 + [429] * 2
        assert await ask(None, "evil.example") == 421  # still first

"""Fixtures on a real browser: each test starts its own, and ends it."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from fakes.site import Site
from fakes.waits import Start

from watchkeeper.supervisor import (
    DialogPolicy,
    LocalEndpoint,
    Supervisor,
    SupervisorOptions,
    SupervisorRegistry,
)
from watchkeeper.supervisor.options import BridgeChoice

GUARD_S = 60.0
ENDPOINT = LocalEndpoint(headless=True)


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
async def registry() -> AsyncIterator[SupervisorRegistry]:
    made = SupervisorRegistry()
    yield made
    await asyncio.wait_for(made.stop_all(), GUARD_S)


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start a supervisor: ``await start(bridge="never", dialog_policy="auto_accept")``."""
    registries: list[SupervisorRegistry] = []

    async def started(
        bridge: BridgeChoice = "auto", dialog_policy: DialogPolicy = "must_respond", **options: float
    ) -> Supervisor:
        made = SupervisorRegistry(options=SupervisorOptions(bridge=bridge, **options))  # type: ignore[arg-type]
        registries.append(made)
        return await made.get_or_start("task", ENDPOINT, dialog_policy=dialog_policy)

    yield started
    for made in registries:
        await asyncio.wait_for(made.stop_all(), GUARD_S)


@pytest.fixture
async def supervisor(registry: SupervisorRegistry) -> Supervisor:
    return await registry.get_or_start("task", ENDPOINT)

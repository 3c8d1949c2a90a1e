"""Fixtures of the supervisor's tests."""

from collections.abc import AsyncIterator

import pytest
from fakes.cdp_server import FakeCdpServer


@pytest.fixture
async def cdp_server() -> AsyncIterator[FakeCdpServer]:
    async with FakeCdpServer() as server:
        yield server

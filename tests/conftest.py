"""Fixtures for every part: asynchronous tests run on asyncio, the only loop that the project supports."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"

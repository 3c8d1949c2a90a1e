"""Fixtures for every part: asynchronous tests run on asyncio, the only loop that the project supports."""

import pytest
from hypothesis import HealthCheck, settings

# A busy machine must not fail a property: no deadlines, and slow generation is no fault.
settings.register_profile("watchkeeper", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("watchkeeper")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"

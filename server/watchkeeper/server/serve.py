"""Put the server together and run it, where no front answers before (``loading.py`` is for where one does)."""

import anyio

from .dispatch import Dispatcher
from .lifetime import serve_until_ended
from .observability import telemetry
from .protocol.app import make_server
from .settings import Settings


async def serve(settings: Settings) -> None:
    """Until the client or a signal ends it.

    Raises: ToolError or SupervisorError where the settings cannot work.
    """
    dispatcher = Dispatcher(settings)
    end_telemetry = telemetry.start(settings, dispatcher.tasks.secrets.masked)
    try:
        await _serve(settings, dispatcher)
    finally:
        end_telemetry()


async def _serve(settings: Settings, dispatcher: Dispatcher) -> None:
    await anyio.to_thread.run_sync(dispatcher.prepare)
    server = make_server(dispatcher)
    limit = settings.server.max_message_mb << 20

    async def beside() -> None:
        """What goes on while clients are served: first what the first page would otherwise wait for is imported."""
        await anyio.to_thread.run_sync(_import_supervisor, abandon_on_cancel=True)
        await server.offer.watch()

    if settings.server.transport == "http":
        from .transports.http import serve_http

        await serve_until_ended(
            dispatcher, lambda stop: serve_http(server, dispatcher, settings, stop), server.offer.watch
        )
        return

    async def over_stdio(stop: anyio.Event) -> None:
        from .transports.stdio import serve_stdio

        await serve_stdio(server, stop, max_message_bytes=limit)

    await serve_until_ended(dispatcher, over_stdio, beside)


def _import_supervisor() -> None:
    """The modules that opening a page needs, and nothing that only some settings need."""
    import watchkeeper.supervisor.backends.connecting
    import watchkeeper.supervisor.page
    import watchkeeper.supervisor.registry  # noqa: F401

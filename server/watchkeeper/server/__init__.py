"""Watchkeeper's MCP server: tools, transports, command line and settings. The only part that knows MCP.

Stable: the command ``watchkeeper``, the names and forms of its tools and settings. No Python name here is.
"""

NAME = "watchkeeper"


def own_version() -> str:
    """The version of the installed distribution."""
    from importlib.metadata import version

    return version(NAME)

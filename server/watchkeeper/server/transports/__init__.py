"""How clients reach the server: stdio, streamable HTTP, SSE."""

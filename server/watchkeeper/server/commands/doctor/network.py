"""The port that would be listened on, and who has it."""

import json
import socket
import urllib.request

from ...settings import Settings
from .finding import Finding, Findings

ANSWER_S = 2.0


def examined(settings: Settings) -> Findings:
    server = settings.server
    if server.transport != "http" or server.port == 0:
        return
    where = f"{server.host}:{server.port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as one:
            # As servers do: a port that was used a moment ago is free.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(address)
    except socket.gaierror:
        said = f"server.host {server.host} is no address"
        yield Finding("wrong", "port", said, "Give 127.0.0.1, or an address of this machine.")
    except PermissionError:
        said = f"{where} may not be listened on"
        yield Finding("wrong", "port", said, "Ports below 1024 are for root: set server.port to another.")
    except OSError as error:
        said = f"{where} cannot be listened on: {error.strerror}{holder(server.host, server.port)}"
        yield Finding("wrong", "port", said, "End who has it, or set server.port to another; 0 takes any free one.")
    else:
        yield Finding("ok", "port", f"{where} is free")


def holder(host: str, port: int) -> str:
    """Who answers there, as far as it tells."""
    shown = f"[{host}]" if ":" in host else host
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for path, name in (("health", "watchkeeper"), ("json/version", "a browser's debugging port")):
        try:
            with opener.open(f"http://{shown}:{port}/{path}", timeout=ANSWER_S) as answer:
                told = json.loads(answer.read(10_000))
        except (OSError, ValueError):
            continue
        if path == "health" or "Browser" in told:
            return f"; {name} has it"
    return "; another program has it"

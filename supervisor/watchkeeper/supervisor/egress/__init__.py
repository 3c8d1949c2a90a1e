"""The gate in front of browsers that we start: whatever they connect to is checked, and connected to, here.

Rules: a name is looked up once, each of its addresses is checked, and the very address that was checked is connected
to, so a name that changes its mind (DNS rebinding) gains nothing. What is refused or fails is recorded with its reason,
for the browser itself is told no more than "failed". Bytes are passed on unread: TLS stays between browser and server.

The gate is a SOCKS5 proxy on loopback, one port for each task. SOCKS and not HTTP, because the browser then asks for a
host and a port with every connection, whatever is spoken on it, and nothing has to be parsed afterwards.
"""

from .gate import Gate
from .gates import UNDECIDED, Gates
from .policy import EgressPolicy, Outcome, ProxyRoute
from .resolving import Resolver

__all__ = ["UNDECIDED", "EgressPolicy", "Gate", "Gates", "Outcome", "ProxyRoute", "Resolver"]

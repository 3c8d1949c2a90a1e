"""The standard descriptors of a server over stdio: taken over before anything else runs.

Rules: stdout carries protocol only, so descriptor 1 points at stderr from then on, and whatever prints goes there;
descriptor 0 is empty, so that no child reads from the client. The private duplicates are not inherited.
"""

import os


def take_over(descriptor: int, instead: int | None) -> int:
    """A duplicate of a standard descriptor, whose number then leads to ``instead`` (None: nowhere)."""
    private = os.dup(descriptor)
    os.set_inheritable(private, False)
    if instead is None:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
    else:
        os.dup2(instead, descriptor)
    return private


def write_all(sink: int, data: bytes) -> None:
    """Write everything, however little the other side takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]

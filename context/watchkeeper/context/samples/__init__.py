"""Sample conversations that ship with the project: for the demo, the benchmark and tests.

They are made by programs, the same every time, and about people, shops and machines that do not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from watchkeeper.context.core.messages import Message
from watchkeeper.context.errors import InvalidArgument

from .builder import Sample
from .checkout import checkout
from .research import research
from .support import support

SAMPLES: Final[Mapping[str, Callable[[], Sample]]] = MappingProxyType(
    {"checkout": checkout, "research": research, "support": support}
)


def load_sample(name: str = "checkout") -> list[Message]:
    """The messages of a sample: `checkout` (coding with a browser), `research` (data work), `support` (three languages).

    Raises:
        InvalidArgument: no sample of that name.
    """
    return sample(name).messages


def sample(name: str = "checkout") -> Sample:
    """A sample with the facts that an agent would need to go on: what a good compression keeps."""
    if name not in SAMPLES:
        raise InvalidArgument(f"there is no sample {name!r:.40}", f"there are {', '.join(SAMPLES)}")
    return SAMPLES[name]()


__all__ = ["SAMPLES", "Sample", "load_sample", "sample"]

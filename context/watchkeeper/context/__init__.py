"""Context engines: shrinking a conversation without forgetting what the agent will need.

Public and stable: the names below. `compress_messages` is the short way; `ContextEngine` is the interface of engines,
`ContextCompressor` the built-in one. Modules under `core` are internal.
"""

from .api import CompressionResult, compress_messages
from .core.messages import Message
from .engine import ContextEngine
from .engines.compressor import ContextCompressor
from .errors import (
    Cancelled,
    ContextError,
    EngineFailed,
    InvalidArgument,
    InvalidMessages,
    SummarizerFailed,
    UnknownEngine,
)
from .report import Report
from .tokens import estimate, tokenizer_for

__all__ = [
    "Cancelled",
    "CompressionResult",
    "ContextCompressor",
    "ContextEngine",
    "ContextError",
    "EngineFailed",
    "InvalidArgument",
    "InvalidMessages",
    "Message",
    "Report",
    "SummarizerFailed",
    "UnknownEngine",
    "compress_messages",
    "estimate",
    "tokenizer_for",
]

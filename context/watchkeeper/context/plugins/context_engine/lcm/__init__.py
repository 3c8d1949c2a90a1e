"""The lossless context engine, as a plugin."""

from .engine import LcmEngine

__all__ = ["LcmEngine"]

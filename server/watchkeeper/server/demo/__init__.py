"""``watchkeeper demo``: the main job on a real browser, over stdio, with every claim checked."""

from .run import demo

__all__ = ["demo"]

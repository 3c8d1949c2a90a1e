"""The archive: originals of conversations, searchable and restorable."""

from .location import default_location
from .recall import Archive, Found, Hit, Page, open_archive
from .tools import ArchiveTools

__all__ = ["Archive", "ArchiveTools", "Found", "Hit", "Page", "default_location", "open_archive"]

"""The archive: originals of conversations, searchable and restorable."""

from .recall import Archive, Found, Hit, Page, open_archive

__all__ = ["Archive", "Found", "Hit", "Page", "open_archive"]

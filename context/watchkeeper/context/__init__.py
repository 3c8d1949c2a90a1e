"""Watchkeeper context."""

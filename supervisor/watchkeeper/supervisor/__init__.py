"""Watchkeeper supervisor."""

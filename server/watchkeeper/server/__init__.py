"""Watchkeeper server."""

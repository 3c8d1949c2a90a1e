"""Plugins shipped with the project; each is found and loaded like anybody's."""

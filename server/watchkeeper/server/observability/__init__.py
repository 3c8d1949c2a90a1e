"""What the server tells of itself: logs, counters, status, spans."""

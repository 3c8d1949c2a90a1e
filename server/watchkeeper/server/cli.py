"""The command line; see the other modules."""
def main() -> int:
    return 0

"""``python -m watchkeeper.server.generate``: see ``documents``."""

import sys

from .documents import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

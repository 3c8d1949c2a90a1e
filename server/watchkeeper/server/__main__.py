"""``python -m watchkeeper.server``: the same as the command ``watchkeeper``."""

import sys

from .cli import main

sys.exit(main())

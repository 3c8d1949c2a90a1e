"""Ends a browser whose owner is gone, where no pipe does that (Windows).

Run as a program: ``python guard.py PID``. It reads its standard input to the end, which comes when the owner ends in
whatever way. An owner that has ended the browser itself says ``over`` first, and then nothing is done: the process id
may belong to somebody else by now.
"""

import os
import signal
import subprocess
import sys

OVER = b"over"


def main(pid: int) -> None:
    if sys.stdin.buffer.read() == OVER:
        return
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(pid)], check=False, capture_output=True)
        return
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""What is being measured just now, for whoever waits: on stderr, so that stdout is the result."""

import sys
import time

BEGAN = time.monotonic()


def say(text: str) -> None:
    """Say what is being done, and since when the whole runs."""
    minutes, seconds = divmod(int(time.monotonic() - BEGAN), 60)
    sys.stderr.write(f"[{minutes:2}:{seconds:02}] {text}\n")
    sys.stderr.flush()

"""The ``headway`` command as it is installed: Ctrl-C while it loads ends it as quietly as later.

It stands beside the package, because importing anything of that is what takes the time.
"""

import sys

try:
    from headway.cli import main
except KeyboardInterrupt:
    sys.stderr.write("headway: stopped\n")
    sys.exit(130)

__all__ = ["main"]

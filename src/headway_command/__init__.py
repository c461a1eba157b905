"""The ``headway`` command as it is installed: a request to stop ends it also while it loads.

It stands beside the package, because importing anything of that is what takes the time.
"""

import importlib
import signal
import sys
from typing import NoReturn

from headway_command.stopping import (
    exit_on_signals,
    ignore_signals,
    is_long_running,
    noted,
    stopped,
)

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line of this process and exit.

    >>> main()  # doctest: +SKIP
    headway 0.1.0
    """
    lasting = is_long_running(sys.argv[1:])
    if lasting:
        exit_on_signals()
    try:
        importlib.import_module("headway.cli").main()
    except KeyboardInterrupt:
        sys.exit(stopped(noted() or signal.SIGINT))
    finally:
        if lasting:  # it is ending: a second request must not change how
            ignore_signals()
    raise AssertionError("headway.cli.main exits")

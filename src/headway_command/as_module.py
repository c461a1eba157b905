"""Imported first by ``headway`` itself: obeys stop signals early also in ``python -m headway``.

Python imports the whole package there before it runs ``headway.__main__``. For every other import
of the package this module does nothing.
"""

import sys

from headway_command.stopping import exit_on_signals, is_long_running

MODULES = ("headway", "headway.cli")


def is_command(argv: list[str], orig_argv: list[str]) -> bool:
    """Return whether Python is about to run the command as a module, and it is a long-running one.

    >>> is_command(["-m", "run", "shop:hw"], ["python", "-m", "headway", "run", "shop:hw"])
    True
    >>> is_command(["app.py", "run"], ["python", "app.py", "run"])
    False
    """
    if argv[:1] != ["-m"] or len(orig_argv) < len(argv):
        return False
    module = orig_argv[-len(argv)]  # "headway", or "-mheadway" if written together
    return module.endswith(MODULES) and is_long_running(argv[1:])


if is_command(sys.argv, sys.orig_argv):
    exit_on_signals()

"""``python -m headway.cli`` is the ``headway`` command."""

from headway.cli import main

main()

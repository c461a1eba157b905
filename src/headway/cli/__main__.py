"""``python -m headway.cli`` is the ``headway`` command."""

from headway_command import main

if __name__ == "__main__":
    main()

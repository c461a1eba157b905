"""``headway worker``: a process that only runs jobs."""

from headway.cli.run import DatabaseUrl, Processes, Quiet, Verbose, run
from headway.cli.target import Target
from headway.wakeups import Role


def worker(
    target: Target,
    processes: Processes = 1,
    database_url: DatabaseUrl = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run only the workers of an application: the same as headway run --only worker.

    Some other process has to run its manager and dispatcher.

    Example: headway worker shop:hw --processes 4
    """
    run(
        target,
        only=[Role.WORKER],
        processes=processes,
        database_url=database_url,
        quiet=quiet,
        verbose=verbose,
    )

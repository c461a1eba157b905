"""Checks of the queue and of live executions."""

from datetime import timedelta

from headway.doctor.findings import Check, Look, Severity, page_by_page
from headway.store import examining_ids
from headway.store import examining_work as work
from headway.store.outcomes import end_orphans

SWEEP = timedelta(seconds=2)
A_WHILE = timedelta(minutes=1)


def _end_orphans(look: Look) -> int:
    ended, _ = end_orphans(look.tx, look.settings.max_crashes, look.settings.retry_policy)
    return len(ended)


ORPHANS = Check(
    "orphans",
    Severity.ERROR,
    "These runs belong to a server that is gone, and nobody has ended them.",
    "they end as WorkerLost and their entries are queued again",
    find=lambda look: work.orphans(look.tx, look.ago(look.lease + SWEEP)),
    repair=page_by_page(_end_orphans),
    twice=True,
)
QUEUED_TWICE = Check(
    "queued-twice",
    Severity.ERROR,
    "These entries wait beside an older one of the same manifest and kind.",
    "they are cancelled, except queued activations, which run one after another",
    find=lambda look: work.queued_twice(look.tx),
    repair=page_by_page(lambda look: work.end_queued_twice(look.tx)),
)
RUNNING_TWICE = Check(
    "running-twice",
    Severity.ERROR,
    "These executions live beside another one of the same manifest.",
    "those that have not begun go back to the queue; cancel one of those that run",
    find=lambda look: work.running_twice(look.tx),
    repair=page_by_page(lambda look: work.take_back_running_twice(look.tx)),
)
GROUP_OVER_CAP = Check(
    "group-over-cap",
    Severity.WARNING,
    "These groups have more jobs at once than their cap allows; right after the cap was lowered "
    "that is as it should be, and nothing new starts until enough have ended.",
    "wait; if it does not pass, look for somebody who writes to the tables",
    find=lambda look: work.groups_over_their_cap(look.tx),
)
OVER_LIMIT = Check(
    "over-limit",
    Severity.WARNING,
    "More jobs live than max_active_jobs allows; right after it was lowered that is as it should "
    "be, unless servers run with different values.",
    "wait, and set max_active_jobs to the same on all servers",
    find=lambda look: work.over_the_limit(
        look.tx, look.settings.max_active_jobs, look.settings.exclude_from_max_active_jobs
    ),
    by_settings=True,
)
ENTRIES_OF_NOBODY = Check(
    "entries-of-nobody",
    Severity.ERROR,
    "These entries wait although their manifest or group is gone.",
    "they are cancelled",
    find=lambda look: work.entries_of_nobody(look.tx),
    repair=page_by_page(lambda look: work.end_entries_of_nobody(look.tx)),
    twice=True,
)
HELD_FOR_THE_FREE = Check(
    "held-for-the-free",
    Severity.ERROR,
    "These activations are kept for dependents that are neither queued nor running.",
    "they are queued",
    find=lambda look: work.held_for_the_free(look.tx),
    repair=page_by_page(lambda look: work.release_held_for_the_free(look.tx)),
    twice=True,
)
PENDING_FOR_NOBODY = Check(
    "pending-for-nobody",
    Severity.WARNING,
    "These executions were dispatched, but no living worker knows their workflow.",
    "start a worker of the application; after stale_pending_timeout they fail",
    find=lambda look: work.pending_for_nobody(look.tx, look.ago(look.lease + A_WHILE)),
    twice=True,
)
QUEUED_FOR_NOBODY = Check(
    "queued-for-nobody",
    Severity.WARNING,
    "Entries of these workflows wait, and no living server knows them.",
    "start a server of the application; after unknown_workflow_timeout they fail",
    find=lambda look: work.queued_for_nobody(look.tx, look.ago(look.lease + A_WHILE)),
    twice=True,
)
IDS_BEHIND = Check(
    "ids-behind",
    Severity.ERROR,
    "The next ids of these tables were used before: what is written under them is refused, and "
    "fencing tokens do not rise.",
    "the next id follows the highest that was used",
    find=lambda look: examining_ids.ids_behind(look.tx),
    repair=page_by_page(lambda look: examining_ids.raise_ids(look.tx)),
    twice=True,
)
UNREADABLE_PARENTS = Check(
    "unreadable-parents",
    Severity.ERROR,
    "What these have noted about their parents cannot be read, so that they could not end.",
    "the notes are cleared; a dependent may run once more than needed",
    find=lambda look: work.unreadable_parents(look.tx),
    repair=page_by_page(lambda look: work.forget_unreadable_parents(look.tx)),
)

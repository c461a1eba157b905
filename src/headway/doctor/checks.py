"""Every check, in the order in which repairs build on one another.

Ids are right before anything is written under them, dead servers are buried before their orphans
are ended, and rows that are there twice go before the indexes that forbid them are built.
"""

from headway.doctor import artifacts, database, definitions, deployment, work
from headway.doctor.findings import Check

CHECKS: tuple[Check, ...] = (
    work.IDS_BEHIND,
    deployment.UNBURIED,
    work.ORPHANS,
    work.UNREADABLE_PARENTS,
    work.QUEUED_TWICE,
    work.RUNNING_TWICE,
    work.ENTRIES_OF_NOBODY,
    work.HELD_FOR_THE_FREE,
    work.GROUP_OVER_CAP,
    work.OVER_LIMIT,
    work.PENDING_FOR_NOBODY,
    work.QUEUED_FOR_NOBODY,
    definitions.WITHOUT_GROUP,
    definitions.WITHOUT_STATE,
    definitions.UNREADABLE,
    definitions.SETTLED_AHEAD,
    definitions.SLEEPING_TOO_LONG,
    definitions.CIRCLES,
    definitions.WAITING_TWICE,
    definitions.WAITING_FOR_THE_REMOVED,
    artifacts.NO_STANDING_OBJECTIVE,
    artifacts.UNREADABLE_ARTIFACTS,
    artifacts.PARKED_EVENTS,
    deployment.RETENTION_BEHIND,
    deployment.DIFFERENT_LEASES,
    deployment.CLOCK_SKEW,
    database.READ_ONLY,
    database.BROKEN_INDEXES,
    database.DANGLING_REFERENCES,
    database.UNSAFE_SETTINGS,
    database.OLD_SNAPSHOTS,
    database.PREPARED_TRANSACTIONS,
    database.IDLE_SLOTS,
    database.VACUUM_OFF,
    database.DEAD_ROWS,
    database.TRANSACTION_AGE,
    database.SUPERUSER,
)

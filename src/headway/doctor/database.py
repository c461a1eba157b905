"""Checks of the database itself."""

from headway.doctor.findings import Check, Severity, page_by_page
from headway.store import examining_database as database

READ_ONLY = Check(
    "read-only",
    Severity.ERROR,
    "The database takes no writes: headway can be looked at here, and nothing can run.",
    "use the address of the primary, or switch default_transaction_read_only off",
    find=lambda look: database.read_only(look.tx),
)
BROKEN_INDEXES = Check(
    "broken-indexes",
    Severity.ERROR,
    "These indexes are missing or not used, by which nothing happens twice and queries are fast.",
    "they are created anew, which keeps writers waiting meanwhile",
    find=lambda look: database.broken_indexes(look.tx),
    repair=page_by_page(lambda look: database.rebuild_indexes(look.tx)),
)
DANGLING_REFERENCES = Check(
    "dangling-references",
    Severity.ERROR,
    "These rows refer to rows that do not exist: somebody deleted those by hand.",
    "restore what was deleted, or delete these as well",
    find=lambda look: database.dangling_references(look.tx),
)
UNSAFE_SETTINGS = Check(
    "unsafe-settings",
    Severity.ERROR,
    "With these settings the database may lose what it has acknowledged.",
    "switch them on; on SQLite, synchronous has to be FULL",
    find=lambda look: database.unsafe_settings(look.tx),
)
OLD_SNAPSHOTS = Check(
    "old-snapshots",
    Severity.WARNING,
    "These transactions have been open for minutes: nothing that was deleted since can be cleaned "
    "up, and claiming jobs becomes slow.",
    "end them, for example with SELECT pg_terminate_backend(pid)",
    find=lambda look: database.old_snapshots(look.tx),
)
PREPARED_TRANSACTIONS = Check(
    "prepared-transactions",
    Severity.WARNING,
    "These transactions were prepared and never ended: they block vacuum until somebody does.",
    "COMMIT PREPARED or ROLLBACK PREPARED",
    find=lambda look: database.prepared_transactions(look.tx),
)
IDLE_SLOTS = Check(
    "idle-replication-slots",
    Severity.WARNING,
    "Nobody reads these replication slots, and the server keeps everything for them.",
    "start whoever reads them, or SELECT pg_drop_replication_slot(name)",
    find=lambda look: database.idle_slots(look.tx),
)
VACUUM_OFF = Check(
    "vacuum-off",
    Severity.WARNING,
    "Autovacuum is switched off, so that dead rows make every claim slower.",
    "switch it on",
    find=lambda look: database.vacuum_switched_off(look.tx),
)
DEAD_ROWS = Check(
    "dead-rows",
    Severity.WARNING,
    "These tables hold far more dead rows than living ones: vacuum does not keep up.",
    "see what blocks it (old-snapshots and the like), then VACUUM the tables",
    find=lambda look: database.dead_rows(look.tx),
)
TRANSACTION_AGE = Check(
    "transaction-age",
    Severity.WARNING,
    "Transaction ids are running out: at two billion the server takes no more writes.",
    "see what blocks vacuum, then VACUUM FREEZE",
    find=lambda look: database.transaction_age(look.tx),
)
SUPERUSER = Check(
    "superuser",
    Severity.HINT,
    "headway connects as a user who may do everything.",
    "give it a user of its own that owns nothing but its schema",
    find=lambda look: database.superuser(look.tx),
)

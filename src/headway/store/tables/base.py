"""What all tables share: the schema object, the words allowed in checks, the id column."""

from sqlalchemy import Column, Identity, MetaData

from headway.store.types import BigId

schema = MetaData()

PRIORITY = "priority BETWEEN 0 AND 31"
SOURCES = "'schedule', 'dependent', 'activation', 'trigger', 'rerun', 'requeue', 'ad_hoc'"
LIVE_STATES = "'pending', 'in_progress'"
FINAL_STATES = "'completed', 'failed', 'cancelled', 'handed_back'"
SCHEDULE_KINDS = "'none', 'interval', 'cron', 'once', 'dependent', 'dormant_dependent'"


def id_column() -> Column[int]:
    return Column("id", BigId, Identity(), primary_key=True)

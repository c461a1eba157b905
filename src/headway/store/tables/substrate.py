"""What a deployment leaves behind and its people note: pause states, captures, objectives."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    SmallInteger,
    Table,
    Text,
    text,
)

from headway.store.tables.base import schema
from headway.store.tables.columns import flag, listed, mapped, moment, one_of, text_

pause_state = Table(
    "headway_pause_state",
    schema,
    Column("pause_id", Text, primary_key=True),
    text_("objective_id"),
    text_("azolla_id"),
    text_("reason"),
    text_("prioritized_actions"),
    moment("created_at"),
    one_of("pause_state", "reason", "RUN_COMPLETE GATE_FAILED BUDGET_EXHAUSTED"),
    CheckConstraint("prioritized_actions <> '[]'", name="headway_pause_state_actions"),
    Index("headway_pause_state_of_objective", "objective_id", "created_at"),
    Index("headway_pause_state_newest", "created_at", "pause_id"),
)

capture_buffer = Table(
    "headway_capture_buffer",
    schema,
    Column("capture_id", Text, primary_key=True),
    text_("azolla_id"),
    text_("raw_content"),
    text_("source_label"),
    Column("status", Text, nullable=False, server_default=text("'PENDING'")),
    moment("created_at"),
    moment("updated_at"),
    one_of("capture_buffer", "status", "PENDING PROCESSED"),
    Index("headway_capture_buffer_oldest", "status", "created_at", "capture_id"),
)

objective = Table(
    "headway_objective",
    schema,
    Column("objective_id", Text, primary_key=True),
    text_("azolla_id"),
    text_("title"),
    text_("acceptance_criteria"),
    text_("objective_type"),
    Column("status", Text, nullable=False, server_default=text("'NEW'")),
    Column("importance", SmallInteger, nullable=False, server_default=text("0")),
    Column("urgency", SmallInteger, nullable=False, server_default=text("0")),
    Column("blocked_reason", Text),
    # The blockers' ids; the artifact shows the blockers themselves.
    listed("blocked_on"),
    mapped("metadata"),
    moment("created_at"),
    moment("updated_at"),
    one_of("objective", "objective_type", "TICKET STANDING"),
    one_of("objective", "status", "NEW TODO IN_PROGRESS BLOCKED DONE"),
    CheckConstraint("importance BETWEEN 0 AND 4", name="headway_objective_importance"),
    CheckConstraint("urgency BETWEEN 0 AND 4", name="headway_objective_urgency"),
    Index("headway_objective_of_status", "status", "updated_at"),
    Index(
        "headway_objective_one_standing",
        "objective_type",
        unique=True,
        postgresql_where=text("objective_type = 'STANDING'"),
        sqlite_where=text("objective_type = 'STANDING'"),
    ),
)

blocker_ref = Table(
    "headway_blocker_ref",
    schema,
    Column("blocker_id", Text, primary_key=True),
    text_("kind"),
    text_("description"),
    flag("blocker_ref", "resolved"),
    one_of(
        "blocker_ref",
        "kind",
        "USER_INPUT EXTERNAL_SYSTEM DEPENDENCY_CHANGE DESIGN_DECISION ENVIRONMENT_ACCESS",
    ),
)
